package poolbench

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// profile is how many pods a Deployment is to have over time.
type profile struct {
	name   string
	warmUp time.Duration // at the first value, before anything is counted
	length time.Duration
	pods   func(at time.Duration) float64
}

// syncPeriod is how often an HPA changes the number of replicas, and stabilization how long it
// waits before it lowers it.
const (
	syncPeriod    = 15 * time.Second
	stabilization = 5 * time.Minute
)

// replicas is what an HPA makes of a profile: whole pods, raised at each period and lowered to the
// highest of the last minutes.
func (p profile) replicas() func(at time.Duration) int {
	var recent []int
	period := -1
	return func(at time.Duration) int {
		for period < int(at/syncPeriod) {
			period++
			desired := int(math.Ceil(p.pods(max(0, time.Duration(period)*syncPeriod-p.warmUp)) - 1e-9))
			recent = append(recent, max(0, desired))
			recent = recent[max(0, len(recent)-int(stabilization/syncPeriod)):]
		}
		most := 0
		for _, n := range recent {
			most = max(most, n)
		}
		return most
	}
}

// points is a line through points.
func points(at ...[2]float64) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		minutes := t.Minutes()
		for i := 1; i < len(at); i++ {
			if a, b := at[i-1], at[i]; minutes < b[0] {
				return a[1] + (b[1]-a[1])*max(0, minutes-a[0])/(b[0]-a[0])
			}
		}
		return at[len(at)-1][1]
	}
}

// ramp climbs tenfold within a time, stays for half an hour, and falls in a quarter.
func ramp(within time.Duration) profile {
	top := 10 + within.Minutes()
	return profile{fmt.Sprintf("ramp: 12 to 120 pods in %s", within), 30 * time.Minute,
		time.Duration(top+75) * time.Minute, points(
			[2]float64{0, 12}, [2]float64{10, 12}, [2]float64{top, 120}, [2]float64{top + 30, 120}, [2]float64{top + 45,
				12})}
}

// day has its trough at four and its peak at sixteen o'clock, and noise that lasts for minutes.
func day(seed uint64) profile {
	noise := wander(seed, 24*time.Hour)
	return profile{"day: 24 to 160 pods, with noise", time.Hour, 24 * time.Hour, func(at time.Duration) float64 {
		level := 92 - 68*math.Cos(2*math.Pi*(at.Hours()-4)/24)
		return level * (1 + noise(at))
	}}
}

// wander is a noise of some percent that forgets itself within ten minutes.
func wander(seed uint64, length time.Duration) func(time.Duration) float64 {
	random := rand.New(rand.NewPCG(seed, 2))
	values := make([]float64, int(length/time.Minute)+2)
	for i := 1; i < len(values); i++ {
		values[i] = 0.9*values[i-1] + 0.015*random.NormFloat64()
	}
	return func(at time.Duration) float64 {
		i := min(int(at/time.Minute), len(values)-2)
		part := at.Minutes() - float64(i)
		return values[i]*(1-part) + values[i+1]*part
	}
}

// burst doubles within two minutes, twice in each of three hours, at times that nobody can know.
func burst(seed uint64) profile {
	random := rand.New(rand.NewPCG(seed, 3))
	line := [][2]float64{{0, 40}}
	for k := range 6 {
		at := float64(30*k) + 3 + 10*random.Float64()
		line = append(line, [2]float64{at, 40}, [2]float64{at + 2, 80}, [2]float64{at + 8, 80}, [2]float64{at + 10, 40})
	}
	return profile{"burst: 40 to 80 pods in 2 min, 6 times", 30 * time.Minute, 3 * time.Hour, points(line...)}
}

// trace is a recorded load, averaged over a minute and scaled so that its highest needs so many pods.
func trace(file string, from, length time.Duration, peak float64) (profile, error) {
	times, values, err := readTrace(file)
	if err != nil {
		return profile{}, err
	}
	minutes := make([]float64, int(length/time.Minute)+1)
	counts := make([]float64, len(minutes))
	for i, t := range times {
		at := time.Duration(t-times[0])*time.Second - from
		if m := int(at / time.Minute); at >= 0 && m < len(minutes) {
			minutes[m] += values[i]
			counts[m]++
		}
	}
	highest := 0.0
	for m := range minutes {
		if counts[m] == 0 {
			return profile{}, fmt.Errorf("%s: no values of minute %d after %s", file, m, from)
		}
		minutes[m] /= counts[m]
		highest = max(highest, minutes[m])
	}
	return profile{fmt.Sprintf("trace: %s, from %s, highest at %.0f pods", file, from, peak), 30 * time.Minute, length,
		func(at time.Duration) float64 {
			// A minute is known when it is over.
			return peak * minutes[max(0, min(int(at/time.Minute)-1, len(minutes)-1))] / highest
		}}, nil
}

// readTrace reads a file with a header and lines of Unix seconds and a value.
func readTrace(file string) (times []int64, values []float64, err error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	lines := csv.NewReader(opened)
	if _, err := lines.Read(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return times, values, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		t, errT := strconv.ParseInt(line[0], 10, 64)
		v, errV := strconv.ParseFloat(line[1], 64)
		if err := errors.Join(errT, errV); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		times, values = append(times, t), append(values, v)
	}
}
