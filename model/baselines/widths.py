"""Widths of the learned baselines' layers (paper, Appendix C): networks and counts of cost share them."""

COLIGHT_WIDTH, COLIGHT_HEADS = 32, 5  # D_emb = D_att = D_rep, H
FRAP_EMBEDDING, FRAP_HIDDEN, FRAP_CONV = 4, 16, 20  # D_emb, D_rep, D_conv
ECOLIGHT_WIDTHS = (2, 10, 10, 2)
