//go:build !long

package e2e

// timeScale is how many times shorter than real every period is: syncs of the HPA, starts of pods,
// ramps, windows.
const timeScale = 3
