// Package compare plays several scalers against the same loads and pods, seed by seed, and tells what that came to: a table,
// files of figures, and charts.
package compare
