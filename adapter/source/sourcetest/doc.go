// Package sourcetest has what the tests of all sources need: a fleet and a sink that a test plays with, virtual time, and
// measures of memory. Only tests import it.
package sourcetest
