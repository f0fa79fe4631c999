// Package score makes figures of what happened in runs, and says how sure one may be of them.
//
// Shortage and excess are those of SPEC RG's elasticity: the accuracy is how many pods were short or spare, the timeshare
// for how long. What is needed in a second is the fewest pods that keep the load of each at or below the threshold.
package score
