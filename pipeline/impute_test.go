package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// table4 are the three instances of the paper's table 4, t1 at 1000.
func table4() []pipeline.Instance {
	return []pipeline.Instance{
		{ID: "A", Samples: everySecond(1000, 0.3, 0.4, 0.5, 0.6)},
		{ID: "B", Samples: everySecond(1000, 0.2, 0.3)},
		{ID: "C", Samples: everySecond(1000, 0.4, 0.5, 0.6, 0.7, 0.6, 0.5)},
	}
}

// Paper, section 5.3, table 4: every row.
func TestTable4(t *testing.T) {
	_, s := stages(t, defaults(), at(6000, table4()...))
	require.Equal(t, int64(1000), s.First)

	imputed := [][]float64{ // A, B, C
		{0.3, 0.2, 0.4}, {0.4, 0.3, 0.5}, {0.5, 0.30, 0.6}, {0.6, 0.30, 0.7}, {0.45, 0.45, 0.6}, {0.45, 0.45, 0.5},
	}
	reported := [][]bool{{true, true, true}, {true, true, true}, {true, false, true}, {true, false, true},
		{false, false, true}, {false, false, true}}
	known := []float64{0.9, 1.2, 1.1, 1.3, 0.6, 0.5} // s^k
	unknown := []float64{0, 0, 0.3, 0.3, 0.9, 0.9}   // s^u
	total := []float64{0.9, 1.2, 1.4, 1.6, 1.5, 1.4} // s
	require.Len(t, s.Imputed, len(imputed))
	for k, row := range s.Imputed {
		near(t, imputed[k], row, "imputed")
		var sumKnown, sumUnknown float64
		for i, v := range row {
			if reported[k][i] {
				sumKnown += v
			} else {
				sumUnknown += v
			}
		}
		require.InDelta(t, known[k], sumKnown, 1e-12, "s^k at t%d", k+1)
		require.InDelta(t, unknown[k], sumUnknown, 1e-12, "s^u at t%d", k+1)
	}
	near(t, total, s.Raw, "s")
}

// Paper, section 5.4: a late batch replaces what was estimated.
func TestLateBatch(t *testing.T) {
	all := table4()
	all[1].Samples = everySecond(1000, 0.2, 0.3, 0.9, 0.9, 0.9, 0.9)
	_, s := stages(t, defaults(), at(6000, all...))
	// A alone is missing from t5 on: it carries its 0.6 of t4.
	near(t, []float64{0.9, 1.2, 2.0, 2.2, 2.1, 2.0}, s.Raw, "s")
}

// Paper, section 5.5: what a failed instance carried stays in the total until its end is known.
func TestFailedInstance(t *testing.T) {
	all := table4()
	_, s := stages(t, defaults(), at(6000, all...))
	near(t, []float64{0.45, 0.45}, s.Imputed[4][:2], "A and B")

	all[0].End = 5000
	f, s := stages(t, defaults(), at(6000, all...))
	require.Equal(t, 2, f.Active)
	near(t, []float64{0.9, 1.2, 1.4, 1.6, 0.9, 0.8}, s.Raw, "s") // B's 0.3 and what C says
}

// Paper, section 5.6: with no total before, unknown instances are worth nothing.
func TestColdStart(t *testing.T) {
	in := at(3000,
		pipeline.Instance{ID: "a", Samples: everySecond(1000, 0.5, 0.6, 0.7)},
		pipeline.Instance{ID: "b", Samples: everySecond(2000, 0.4, 0.4)},
		pipeline.Instance{ID: "c"})
	_, s := stages(t, defaults(), in)
	near(t, []float64{0.5, 1.0, 1.1}, s.Raw, "s")
}

// An instance that has just joined without data shares what the silent ones carried, and takes nothing from the known.
func TestNewcomerWithoutData(t *testing.T) {
	in := at(4000,
		pipeline.Instance{ID: "a", Samples: everySecond(1000, 0.5, 0.6, 0.7, 0.8)},
		pipeline.Instance{ID: "b", Samples: everySecond(1000, 0.4, 0.4)},
		pipeline.Instance{ID: "c", Start: 4000},
		pipeline.Instance{ID: "d", Start: 1500, End: 1900}) // never active at a tick
	_, s := stages(t, defaults(), in)
	near(t, []float64{0.9, 1.0, 1.1, 1.2}, s.Raw, "s")
	near(t, []float64{0.8, 0.2, 0.2}, s.Imputed[3][:3], "at t4")

	in.Instances[1].Samples = everySecond(1000, 0.4, 0.4, 0.4, 0.4)
	_, s = stages(t, defaults(), in)
	near(t, []float64{0.8, 0.4, 0}, s.Imputed[3][:3], "at t4")
}

// The load of an instance ends with it: the other instances show the load that they took over in their own readings.
func TestDepartedInstance(t *testing.T) {
	in := at(4000,
		pipeline.Instance{ID: "a", Samples: everySecond(1000, 0.5, 0.5, 0.9, 0.9)},
		pipeline.Instance{ID: "b", End: 3000, Samples: everySecond(1000, 0.4, 0.4)},
		pipeline.Instance{ID: "c", Samples: everySecond(1000, 0.3, 0.3)})
	_, s := stages(t, defaults(), in)
	near(t, []float64{1.2, 1.2, 1.2, 1.2}, s.Raw, "s")
	near(t, []float64{0.9, 0.3}, []float64{s.Imputed[2][0], s.Imputed[2][2]}, "a and c at t3")
}

// Known instances may report less than they were thought to carry; the rest is never below nothing.
func TestNothingIsLeft(t *testing.T) {
	in := at(4000,
		pipeline.Instance{ID: "a", Samples: everySecond(1000, -2, -2, 0.5, 0.5)},
		pipeline.Instance{ID: "b", Samples: everySecond(1000, 1, 1)})
	_, s := stages(t, defaults(), in)
	near(t, []float64{-1, -1, 1.5, 1.5}, s.Raw, "s")

	in.Instances[0], in.Instances[1] = pipeline.Instance{ID: "a", Samples: everySecond(1000, 1, 1, 1)},
		pipeline.Instance{ID: "b", Samples: everySecond(1000, -2, -2)}
	_, s = stages(t, defaults(), in)
	near(t, []float64{-1, -1, 1}, s.Raw, "s")
}
