/* helper_habit.c - see helper_habit.h. */
#include "pt2pt/helper_habit.h"

struct habit habit;

void habit_open(void) { habit = (struct habit){0}; }

void habit_learn(bool away)
{
    habit.back[habit.place] = !away;
    if (away) habit.place = 0;
}
