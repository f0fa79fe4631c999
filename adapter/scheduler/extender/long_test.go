//go:build long

package extender

import "testing"

func TestMoreTotalsMatchARecount(t *testing.T) { testTotals(t, 2, 20) }
