/* helper_habit.c - see helper_habit.h. */
#include "pt2pt/helper_habit.h"

struct habit habit;

void habit_open(void) { habit = (struct habit){.away = UINT64_MAX}; }

void habit_learn(bool away)
{
    uint64_t bit = UINT64_C(1) << habit.place;
    habit.away = away ? habit.away | bit : habit.away & ~bit;
}
