//go:build !long

package extender

// crowd is how many pods come at once where tests are about many: half as many as in the long tests.
const crowd = 500
