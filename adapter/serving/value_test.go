package serving

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
)

// population is one random case: a threshold as a user writes it, and how many instances the forecast needs.
type population struct {
	threshold string
	tau       float64 // as the API hands it on
	milli     int64   // as the HPA reads a target of the same value
	instances float64
}

func (f population) load() float64 { return f.tau * f.instances }

func (f population) String() string {
	return fmt.Sprintf("threshold %s, %v instances", f.threshold, f.instances)
}

// want is the count that the pipeline computes.
func (f population) want() int64 { return int64(math.Ceil(f.instances - slack)) }

func randomPopulation(r *rand.Rand) population {
	milli := int64(math.Exp(r.Float64() * math.Log(1e7))) // 1m to 10k
	q := resource.NewMilliQuantity(milli, resource.DecimalSI)
	f := population{threshold: q.String(), tau: q.AsApproximateFloat64(), milli: q.MilliValue()}
	switch r.IntN(4) {
	case 0: // exactly n instances, and what is left of that after some arithmetic
		f.instances = float64(r.IntN(2000)) * (1 + (r.Float64()-0.5)*1e-15)
	case 1: // just off a whole number, on the side where the slack does not reach
		f.instances = float64(1+r.IntN(2000)) + []float64{-1e-6, 1e-6, 2e-9}[r.IntN(3)]
	default:
		f.instances = math.Exp(r.Float64()*math.Log(5e5)) - 1
	}
	return f
}

func newTestDemand(t *testing.T, load, threshold float64) demand {
	d, err := newDemand(load, threshold)
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
	return d
}

// From the served values the HPA computes exactly the instances that the pipeline computes.
func TestHPAComputesTheReplicasOfThePipeline(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300_000 {
		f := randomPopulation(r)
		d := newTestDemand(t, f.load(), f.tau)
		h := hpa{target: f.milli}
		replicas, ready := int64(1+r.IntN(200)), int64(1+r.IntN(200))
		if got := h.average(d.total(), replicas); got != f.want() {
			t.Fatalf("%v: AverageValue asks for %d, want %d", f, got, f.want())
		}
		most := f.want()
		if ready >= f.milli { // a milli-unit is worth more than an instance
			most += ceilDiv(ready, f.milli)
		}
		if got := h.value(d.perPod(ready), ready, ready); got < f.want() || got > most {
			t.Fatalf("%v at %d ready: Value asks for %d, want %d to %d", f, ready, got, f.want(), most)
		}
	}
}

// Only the tolerance lets the HPA keep its replicas instead.
func TestHPAWithToleranceStaysOrFollows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	stayed := 0
	for range 200_000 {
		f := randomPopulation(r)
		d := newTestDemand(t, f.load(), f.tau)
		h := hpa{target: f.milli, tolerance: 0.1}
		replicas := int64(max(1, f.instances*(0.7+0.6*r.Float64())))
		got := h.average(d.total(), replicas)
		if got == replicas && f.want() != replicas {
			stayed++
			rounding := 0.012 + 1/float64(f.milli*replicas) // a step of the quantisation, and a milli-unit
			require.InDelta(t, 1, f.instances/float64(replicas), h.tolerance+rounding, "%v at %d replicas", f, replicas)
		} else if got != f.want() {
			t.Fatalf("%v at %d replicas: AverageValue asks for %d, want %d", f, replicas, got, f.want())
		}
	}
	assert.Positive(t, stayed)
}

// Rounding is upwards, by less than a hundredth above ten thousandths of an instance, and keeps order.
func TestQuantisationIsSmallAndMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200_000 {
		f := randomPopulation(r)
		exact := f.instances * float64(f.milli)
		got := float64(newTestDemand(t, f.load(), f.tau).total())
		most := exact + max(0.01*exact, 0.001*float64(f.milli)) + 1
		if got < exact-2*slack*float64(f.milli)-1e-9*exact || got >= most {
			t.Fatalf("%v: %v served for %v", f, got, exact)
		}
		if more := newTestDemand(t, f.load()*(1+r.Float64()/100), f.tau); float64(more.total()) < got {
			t.Fatalf("%v: %v served, and %d for a larger load", f, got, more.total())
		}
	}
}

func TestQuantisedValues(t *testing.T) {
	for _, c := range []struct {
		name            string
		load, threshold float64
		total           int64
		ready           int64
		perPod          int64
	}{
		{"nothing", 0, 0.7, 0, 3, 0},
		{"below nothing", -0.1, 0.7, 0, 3, 0},
		{"two digits of one instance are kept", 0.7 * 1.234, 0.7, 868, 1, 868}, // 1.24 instances
		{"one digit above ten", 0.7 * 14.27, 0.7, 10010, 10, 1001},             // 14.3 instances
		{"whole instances above a hundred", 0.7 * 142.7, 0.7, 100100, 100, 1001},
		{"thousandths below one", 0.7 * 0.0001, 0.7, 1, 1, 1},
		{"a whole number stays", 0.7 * 10, 0.7, 7000, 10, 700},
		{"a rounding error above a whole number stays", 0.7 * 14.000000000001, 0.7, 9800, 14, 700},
		{"14.00001 instances are 15, served as 14.1", 0.7 * 14.00001, 0.7, 9870, 10, 987},
		{"rounded down where up would be one more", 10, 10, 10000, 3, 3333},
		{"rounded up where down would be one less", 0.010 * 1.5, 0.010, 15, 10, 2},
		{"a threshold below a milli-unit counts as one", 0.0005 * 4, 0.0005, 4, 2, 2},
		{"a large unit", 2147483648 * 12.34, 2147483648, 26628797235200, 3, 8876265745067},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTestDemand(t, c.load, c.threshold)
			assert.Equal(t, c.total, d.total(), "total")
			assert.Equal(t, c.perPod, d.perPod(c.ready), "per pod")
		})
	}
}

// TestMemoryOfLargeTargets has loads and thresholds in bytes, in milli-units of which float64 is not exact.
func TestMemoryOfLargeTargets(t *testing.T) {
	const gibi = 1 << 30
	for _, threshold := range []float64{1e8, gibi, 3 * gibi, 700 * gibi, 1e12, 24 << 40} {
		for _, instances := range []float64{1, 3, 10, 999, 4097} {
			d, err := newDemand(threshold*instances, threshold)
			if err != nil {
				assert.Greater(t, threshold*instances, 4.6e15, err)
				continue
			}
			name := fmt.Sprintf("%v × %v", instances, threshold)
			assert.InDelta(t, instances, math.Ceil(float64(d.total())/float64(d.threshold)), 0, name)
			assert.InEpsilon(t, threshold*instances*1000, float64(d.total()), 1e-9, name)
			for _, ready := range []int64{1, 7, 5000} {
				want := d.instances()
				assert.Equal(t, want, d.scaledBy(d.perPod(ready), ready), "%s on %d pods", name, ready)
			}
		}
	}
}

// Values that jitter by less than a step are served as one number.
func TestJitterServesOneValue(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	values := map[int64]int{}
	for range 1000 {
		values[newTestDemand(t, 0.7*(14.25+0.04*(r.Float64()-0.5)), 0.7).total()]++
	}
	assert.Equal(t, map[int64]int{10010: 1000}, values)
}

func TestDemandsThatCannotBeServed(t *testing.T) {
	for _, c := range []struct {
		load, threshold float64
		message         string
	}{
		{math.NaN(), 1, "the load NaN"},
		{math.Inf(1), 1, "the load +Inf"},
		{5e15, 1, "the load 5e+15"},
		{1, 0, "the threshold 0"},
		{1, -1, "the threshold -1"},
		{1, math.NaN(), "the threshold NaN"},
		{1, math.Inf(1), "the threshold +Inf"},
	} {
		_, err := newDemand(c.load, c.threshold)
		assert.ErrorContains(t, err, c.message)
	}
}

func FuzzDemand(f *testing.F) {
	f.Add(10.0, 0.7, int64(3))
	f.Add(9e12, 0.001, int64(1))
	f.Add(0.9, 9e12, int64(math.MaxInt32))
	f.Fuzz(func(t *testing.T, load, threshold float64, ready int64) {
		d, err := newDemand(load, threshold)
		if err != nil || ready < 1 || ready > math.MaxInt32 {
			return
		}
		if d.total() < 0 || d.perPod(ready) < 0 || d.perPod(ready) > d.total()+1 {
			t.Fatalf("load %v, threshold %v, ready %d: total %d, per pod %d", load, threshold, ready, d.total(),
				d.perPod(ready))
		}
	})
}
