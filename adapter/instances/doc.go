// Package instances turns pods into the instances that forecasts are made of: who carries load, since when, and until
// when. A Watcher tells a Tracker of the pods of a cluster; each scale target that is followed has a Fleet, which answers
// which instances there are, how many pods the HPA counts as ready, and how long pods take to start.
package instances
