/* What the firmware is: MODE comes from the build (TINYLIGHT_MODE). docs/controller.md */
#ifndef MODE_H
#define MODE_H

#define MODE_ANSWER 0 /* it answers what a host asks */
#define MODE_LIGHT 1  /* it drives the lamps; features come from a host */
#define MODE_ALONE 2  /* it senses, decides and drives the lamps */

#ifndef MODE
#define MODE MODE_ANSWER
#endif

#endif
