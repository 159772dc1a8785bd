"""Proof that the safety shell keeps its promises: all states explored, hostile inputs tried."""
