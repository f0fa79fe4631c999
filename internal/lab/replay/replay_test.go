package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // wherever the test runs

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

func recordingOf(t testing.TB, events []event) *Recording {
	rec, err := Read(strings.NewReader(text(t, events)))
	require.NoError(t, err)
	return rec
}

func text(t testing.TB, events []event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(encode(t, e) + "\n")
	}
	return b.String()
}

func replayed(t testing.TB, rec *Recording, o Options) []Result {
	results, err := rec.Replay(o)
	require.NoError(t, err)
	return slices.Collect(results)
}

func output(t testing.TB, events []event, o Options) string {
	var out strings.Builder
	_, err := Run(t.Context(), strings.NewReader(text(t, events)), &out, o, JSON)
	require.NoError(t, err)
	return out.String()
}

// testParams are the defaults for a metric with threshold 0.7 and at most 20 instances.
func testParams() pipeline.Params {
	p := pipeline.HoltParams()
	p.Threshold, p.Max = 0.7, 20
	return p
}

// ramp returns a sample a second of one instance, over [from, to] s, growing by slope a second.
func ramp(id string, from, to int64, v, slope float64) []event {
	var events []event
	for s := from; s <= to; s++ {
		events = append(events, event{kind: sample, instance: []byte(id), at: s * 1000, received: s * 1000,
			value: v + slope*float64(s-from)})
	}
	return events
}

func samplesOf(events []event) []pipeline.Sample {
	var samples []pipeline.Sample
	for _, e := range events {
		samples = append(samples, pipeline.Sample{T: e.at, V: e.value})
	}
	return samples
}

func starts(id string, at int64) event {
	return event{kind: lifecycle, instance: []byte(id), start: at, end: pipeline.Never}
}

func ends(id string, at int64) event {
	return event{kind: lifecycle, instance: []byte(id), start: pipeline.Never, end: at}
}

func runAt(now int64) event { return event{kind: run, at: now} }

func targetAt(at int64, count int) event { return event{kind: target, at: at, count: count} }

func forecast(t *testing.T, in pipeline.Input) pipeline.Forecast {
	p, err := pipeline.New(testParams())
	require.NoError(t, err)
	f, err := p.Run(in)
	require.NoError(t, err)
	return f
}

func TestRunsAreEvaluatedInOrderOfTime(t *testing.T) {
	a, b := ramp("a", 0, 30, 0.3, 0.01), ramp("b", 10, 30, 0.1, 0)
	events := slices.Concat([]event{runAt(30_000), runAt(15_500), runAt(30_000), starts("b", 9_000), starts("a", -1000),
		targetAt(0, 3)}, b, a)
	got := replayed(t, recordingOf(t, events), Options{Params: testParams()})

	require.Len(t, got, 3)
	early := pipeline.Input{Now: 15_500, Target: 3, TargetRose: 0, Instances: []pipeline.Instance{
		{ID: "a", Start: -1000, Samples: samplesOf(a[:16])}, {ID: "b", Start: 9000, Samples: samplesOf(b[:6])},
	}}
	late := pipeline.Input{Now: 30_000, Target: 3, TargetRose: 0, Instances: []pipeline.Instance{
		{ID: "a", Start: -1000, Samples: samplesOf(a)}, {ID: "b", Start: 9000, Samples: samplesOf(b)},
	}}
	assert.Equal(t, forecast(t, early), got[0].Forecast)
	assert.Equal(t, forecast(t, late), got[1].Forecast)
	assert.Equal(t, got[1], got[2])
}

func TestALateBatchIsSeenOnceReceived(t *testing.T) {
	a, b := ramp("a", 0, 40, 0.5, 0), ramp("b", 0, 40, 0.2, 0)
	for i := range b[11:31] {
		b[11+i].received = 35_000
	}
	events := slices.Concat(a, b, []event{starts("a", 0), starts("b", 0), runAt(30_000), runAt(34_999), runAt(35_000)})
	got := replayed(t, recordingOf(t, events), Options{Params: testParams()})

	before := forecast(t, pipeline.Input{Now: 30_000, TargetRose: pipeline.Never, Instances: []pipeline.Instance{
		{ID: "a", Samples: samplesOf(a[:31])}, {ID: "b", Samples: samplesOf(b[:11])},
	}})
	gap := forecast(t, pipeline.Input{Now: 34_999, TargetRose: pipeline.Never, Instances: []pipeline.Instance{
		{ID: "a", Samples: samplesOf(a[:35])}, {ID: "b", Samples: samplesOf(slices.Concat(b[:11], b[31:35]))},
	}})
	after := forecast(t, pipeline.Input{Now: 35_000, TargetRose: pipeline.Never, Instances: []pipeline.Instance{
		{ID: "a", Samples: samplesOf(a[:36])}, {ID: "b", Samples: samplesOf(b[:36])},
	}})
	assert.Equal(t, []pipeline.Forecast{before, gap, after},
		[]pipeline.Forecast{got[0].Forecast, got[1].Forecast, got[2].Forecast})
}

func TestTheSampleReceivedLastCounts(t *testing.T) {
	for name, c := range map[string]struct {
		first, second int64 // when the two samples at 10 s are received, by the order of their lines
		want          float64
	}{
		"later line":      {10_000, 10_000, 0.9},
		"later reception": {12_000, 11_000, 0.1},
		"not yet there":   {10_000, 99_000, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			a := ramp("a", 0, 9, 0.5, 0)
			last := event{kind: sample, instance: []byte("a"), at: 10_000}
			first, second := last, last
			first.received, first.value = c.first, 0.1
			second.received, second.value = c.second, 0.9
			got := replayed(t, recordingOf(t, slices.Concat(a, []event{starts("a", 0), first, second, runAt(12_000)})),
				Options{Params: testParams()})
			last.value = c.want
			want := forecast(t, pipeline.Input{Now: 12_000, TargetRose: pipeline.Never,
				Instances: []pipeline.Instance{{ID: "a", Samples: samplesOf(append(a, last))}}})
			assert.Equal(t, want, got[0].Forecast)
		})
	}
}

func TestAnInstanceWithoutAStartIsThereFromItsFirstSample(t *testing.T) {
	a, b := ramp("a", 0, 20, 0.5, 0), ramp("b", 10, 20, 0.5, 0)
	b[0].received = 19_000 // the run at 18 s takes the second for the first
	got := replayed(t, recordingOf(t, slices.Concat(a, b, []event{runAt(18_000), runAt(20_000)})),
		Options{Params: testParams()})
	for i, start := range []int64{11_000, 10_000} {
		n := got[i].Now / 1000
		want := forecast(t, pipeline.Input{Now: got[i].Now, TargetRose: pipeline.Never, Instances: []pipeline.Instance{
			{ID: "a", Samples: samplesOf(a[:n+1])}, {ID: "b", Start: start, Samples: samplesOf(b[start/1000-10 : n-9])},
		}})
		assert.Equal(t, want, got[i].Forecast)
	}
}

func TestOfABatchTheLaterLineCounts(t *testing.T) {
	var batch []event
	for n := range int64(100) { // ten samples for each of ten times, received together, with others in between
		other := event{kind: sample, instance: []byte("b"), at: 99_000, received: 99_000 - n%7*1000}
		batch = append(batch, other)
		batch = append(batch, event{kind: sample, instance: []byte("a"), at: n % 10 * 1000, received: 10_000,
			value: float64(n)})
	}
	var last []event
	for i := 181; i < 200; i += 2 {
		last = append(last, batch[i])
	}
	got := replayed(t, recordingOf(t, append(batch, starts("a", 0), runAt(10_000))), Options{Params: testParams()})
	want := forecast(t, pipeline.Input{Now: 10_000, TargetRose: pipeline.Never,
		Instances: []pipeline.Instance{{ID: "a", Samples: samplesOf(last)}}})
	assert.Equal(t, want, got[0].Forecast)
}

func TestAnEndAtZeroIsAnEnd(t *testing.T) {
	events := slices.Concat(ramp("a", -20, 10, 0.5, 0), ramp("b", -20, -1, 0.5, 0),
		[]event{starts("a", -60_000), starts("b", -60_000), ends("b", 0), runAt(10_000)})
	got := replayed(t, recordingOf(t, events), Options{Params: testParams()})
	assert.Equal(t, 1, got[0].Forecast.Active)
}

func TestRisenTargetDelaysScaleDown(t *testing.T) {
	fleet := slices.Concat(ramp("a", 0, 200, 0.1, 0), ramp("b", 0, 200, 0.1, 0),
		[]event{starts("a", 0), starts("b", 0), ends("b", 90_000), runAt(100_000)})
	for name, c := range map[string]struct {
		targets []event
		want    pipeline.Reason
	}{
		"no target line":            {nil, pipeline.NoNeed},
		"the first, above":          {[]event{targetAt(60_000, 3)}, pipeline.ScaleUpPending},
		"the first, long ago":       {[]event{targetAt(40_000, 3)}, pipeline.Headroom},
		"the first, as many active": {[]event{targetAt(60_000, 2)}, pipeline.Headroom},
		"the first, after one left": {[]event{targetAt(90_000, 2)}, pipeline.ScaleUpPending},
		"risen":                     {[]event{targetAt(0, 2), targetAt(70_000, 4)}, pipeline.ScaleUpPending},
		"repeated":                  {[]event{targetAt(0, 4), targetAt(70_000, 4)}, pipeline.Headroom},
		"fallen since it rose": {[]event{targetAt(0, 2), targetAt(70_000, 5), targetAt(80_000, 4)},
			pipeline.ScaleUpPending},
		"corrected on a later line": {[]event{targetAt(0, 4), targetAt(70_000, 5), targetAt(70_000, 4)},
			pipeline.Headroom},
		"not yet planned": {[]event{targetAt(100_001, 9)}, pipeline.NoNeed},
	} {
		t.Run(name, func(t *testing.T) {
			got := replayed(t, recordingOf(t, append(slices.Clone(fleet), c.targets...)), Options{Params: testParams()})
			require.NoError(t, got[0].Err)
			assert.Equal(t, c.want, got[0].Decision.Reason)
		})
	}
}

func TestTheFirstTargetIsHeldAgainstInstancesLongGone(t *testing.T) {
	fleet := slices.Concat(ramp("a", 0, 900, 0.1, 0),
		[]event{starts("a", 0), starts("b", 0), ends("b", 100_000), targetAt(50_000, 2), runAt(900_000)})
	p := testParams()
	p.PendingExpiry = time.Hour
	got := replayed(t, recordingOf(t, fleet), Options{Params: p})
	assert.Equal(t, pipeline.Headroom, got[0].Decision.Reason)
	fleet = append(fleet, targetAt(40_000, 1))
	got = replayed(t, recordingOf(t, fleet), Options{Params: p})
	assert.Equal(t, pipeline.ScaleUpPending, got[0].Decision.Reason)
}

func TestCooldownsCountFromTheDecisionsOfEarlierRuns(t *testing.T) {
	fleet := slices.Concat(ramp("a", 0, 400, 0.9, 0), []event{starts("a", -600_000)})
	for s := int64(100); s < 400; s++ {
		fleet = append(fleet, event{kind: demand, at: s * 1000, received: s * 1000, value: -0.85})
	}
	// Overloaded until 100 s, idle from then on; four are planned.
	fleet = append(fleet, targetAt(0, 4), targetAt(0, 1), targetAt(99_000, 4))
	for _, s := range []int64{50, 53, 56, 200, 230, 260, 261} {
		fleet = append(fleet, runAt(s*1000))
	}
	p := testParams()
	p.PendingExpiry = 0
	rec := recordingOf(t, fleet)
	actions := func(o Options) (actions []pipeline.Action, reasons []pipeline.Reason) {
		for _, r := range replayed(t, rec, o) {
			require.NoError(t, r.Err)
			actions, reasons = append(actions, r.Decision.Action), append(reasons, r.Decision.Reason)
		}
		return actions, reasons
	}
	const up, down, hold = pipeline.ScaleUp, pipeline.ScaleDown, pipeline.Hold
	own, _ := actions(Options{Params: p})
	assert.Equal(t, []pipeline.Action{up, up, up, down, down, down, down}, own)
	held, reasons := actions(Options{Params: p, Cooldowns: true})
	assert.Equal(t, []pipeline.Action{up, hold, up, down, hold, down, hold}, held)
	assert.Equal(t, pipeline.CoolingDown, reasons[1])
	again, _ := actions(Options{Params: p, Cooldowns: true})
	assert.Equal(t, held, again, "a replay leaves nothing behind")
}

func TestNewInstanceDelaysScaleDown(t *testing.T) {
	fleet := slices.Concat(ramp("a", 0, 400, 0.1, 0),
		[]event{starts("a", 0), starts("b", 100_000), ends("b", 101_000), runAt(279_999), runAt(280_000)})
	fleet = append(fleet, targetAt(0, 3), event{kind: sample, instance: []byte("yet to come"), at: 280_500,
		received: 280_000, value: 1})
	got := replayed(t, recordingOf(t, fleet), Options{Params: testParams(), Cooldowns: true})
	assert.Equal(t, pipeline.CoolingDown, got[0].Decision.Reason)
	assert.Equal(t, pipeline.Headroom, got[1].Decision.Reason)
}

func TestForgetsInstancesThatCannotMatter(t *testing.T) {
	var events []event
	for i := range int64(500) {
		id := fmt.Sprintf("pod-%d", i)
		events = append(events, ramp(id, 10*i, 10*i+19, 0.3, 0)...)
		events = append(events, starts(id, 10_000*i), ends(id, 10_000*i+20_000))
		events = append(events, event{kind: demand, at: 10_000 * i, received: 10_000 * i, value: 1})
	}
	fleet := newFleet(recordingOf(t, events), testParams())
	for now := int64(1000); now < 5_000_000; now += 1000 {
		fleet.advance(now)
		in := fleet.input(now)
		require.LessOrEqual(t, len(fleet.live), 2+18+1, "those active, and those that ended in the last 180 s")
		require.LessOrEqual(t, len(in.Instances), 2+12+1, "those active, and those that ended in the last 120 s")
		require.LessOrEqual(t, len(in.Demand), 10+5, "those of the window, its start included, and a few before")
	}
	fleet.advance(6_000_000)
	assert.Empty(t, fleet.live)
	assert.Empty(t, fleet.input(6_000_000).Instances)
}

func TestSamplesFromTheFutureWait(t *testing.T) {
	events := append(ramp("a", 0, 1000, 0.5, 0), starts("a", 0))
	for i := range events {
		events[i].received = 0 // by a clock far ahead
	}
	fleet := newFleet(recordingOf(t, events), testParams())
	for now := int64(500); now < 1_000_000; now += 1000 {
		fleet.advance(now)
		samples := fleet.input(now).Instances[0].Samples
		require.LessOrEqual(t, len(samples), 5+90+1, "a few before the window, the window, and an interval more")
		require.Equal(t, now+500, samples[len(samples)-1].T)
	}
}

func TestJSONHasTheFieldsInOrderAndInFull(t *testing.T) {
	events := slices.Concat(ramp("a", 0, 60, 0.3, 0.01), []event{starts("a", 0), runAt(-5), runAt(60_100)})
	got := output(t, events, Options{Params: testParams()})
	f := replayed(t, recordingOf(t, events), Options{Params: testParams()})[1].Forecast
	number := func(x float64) string {
		b, err := json.Marshal(x)
		require.NoError(t, err)
		return string(b)
	}
	want := `{"now":-5,"error":"` + pipeline.ErrNoData.Error() + `"}` + "\n" +
		`{"now":60100,"tick":60000,"level":` + number(f.Level) + `,"trend":` + number(f.Trend) +
		`,"horizonMs":45000,"forecast":` + number(f.Total) + `,"damped":` + number(f.PlannedLoad) +
		`,"contributionWeight":1,"active":1,"loadNow":` + number(f.LoadNow) + `,"loadPredicted":` + number(f.LoadPredicted) +
		`,"direction":"Steady","desired":2,"action":"ScaleUp"}` + "\n"
	assert.Equal(t, want, got)
	assert.NotEqual(t, f.Total, f.PlannedLoad)
}

func TestTableHasARowPerRun(t *testing.T) {
	events := slices.Concat(ramp("a", 0, 60, 0.3, 0.01), []event{starts("a", 0), runAt(-5), runAt(60_100)})
	var out strings.Builder
	runs, err := Run(t.Context(), strings.NewReader(text(t, events)), &out, Options{Params: testParams()}, Table)
	require.NoError(t, err)
	assert.Equal(t, 2, runs)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 3)
	assert.Contains(t, lines[1], "-5  error: no tick of the window has a value")
	for _, word := range []string{"NOW", "HORIZON", "WEIGHT", "DIRECTION"} {
		assert.Contains(t, lines[0], word)
	}
	end := strings.Index(lines[0], "TICK") + len("TICK")
	assert.True(t, strings.HasSuffix(lines[2][:end], "  60000"), "numbers end under their title")
	assert.Equal(t, strings.Index(lines[0], "ACTION"), strings.Index(lines[2], "ScaleUp"))
	assert.Contains(t, lines[2], "45s")
	assert.Equal(t, strings.Index(lines[0], "REASON"), strings.Index(lines[2], "AboveThreshold"))
}

func TestBadLineKeepsEarlierResults(t *testing.T) {
	good := slices.Concat(ramp("a", 0, 20, 0.5, 0), []event{starts("a", 0), runAt(20_000), runAt(10_000)})
	bad := text(t, good) + "{\"run\":}\n" + `{"run":15000}` + "\n"
	var out strings.Builder
	runs, err := Run(t.Context(), strings.NewReader(bad), &out, Options{Params: testParams()}, JSON)
	require.ErrorContains(t, err, "line 25: not a JSON object")
	assert.Equal(t, 2, runs)
	assert.Equal(t, output(t, good, Options{Params: testParams()}), out.String())
}

func TestRunRejectsUnusableParametersAndFormats(t *testing.T) {
	p := testParams()
	p.Threshold = 0
	_, err := Run(t.Context(), iotestNever{t}, io.Discard, Options{Params: p}, JSON)
	require.ErrorContains(t, err, "threshold: 0: must be")
	_, err = Run(t.Context(), iotestNever{t}, io.Discard, Options{Params: testParams()}, "xml")
	require.ErrorContains(t, err, `output: "xml": must be one of [json table]`)
	_, err = (&Recording{}).Replay(Options{})
	require.ErrorContains(t, err, "threshold")
}

// iotestNever is an input that must not be read.
type iotestNever struct{ t *testing.T }

func (r iotestNever) Read([]byte) (int, error) {
	r.t.Error("the input was read")
	return 0, io.EOF
}

func TestRunStopsWhenItIsInterrupted(t *testing.T) {
	stop := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	silent, end := io.Pipe()
	defer func() { assert.NoError(t, end.Close()) }()
	time.AfterFunc(time.Millisecond, func() { cancel(stop) })
	_, err := Run(ctx, silent, io.Discard, Options{Params: testParams()}, JSON)
	require.ErrorIs(t, err, stop)

	var out bytes.Buffer
	_, err = Run(ctx, strings.NewReader(`{"run":1}`), &out, Options{Params: testParams()}, JSON)
	require.ErrorIs(t, err, stop)
	assert.Empty(t, out.String())
}

func TestRunReportsWriteErrors(t *testing.T) {
	full := errors.New("no space left")
	for _, runs := range []int{1, 5000} {
		_, err := Run(t.Context(), strings.NewReader(strings.Repeat("{\"run\":1}\n", runs)), failingWriter{full},
			Options{Params: testParams()}, JSON)
		require.ErrorIs(t, err, full)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// Where they are to learn, runs expect what followed before.
func TestRunsLearn(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"instance":"a","start":0}` + "\n")
	for s := range 3 * 3600 {
		fmt.Fprintf(&b, `{"instance":"a","t":%d,"v":%v}`+"\n", s*1000, 2+2*math.Abs(float64(s%240)-120)/120)
		if s > 60 && s%15 == 0 {
			fmt.Fprintf(&b, `{"run":%d}`+"\n", s*1000)
		}
	}
	recording, err := Read(strings.NewReader(b.String()))
	require.NoError(t, err)
	params := pipeline.AdaptiveParams()
	params.Threshold, params.Max = 0.7, 20
	off := func(o Options) (sum float64) {
		results, err := recording.Replay(o)
		require.NoError(t, err)
		for r := range results {
			require.NoError(t, r.Err)
			at := (r.Now + r.Forecast.Horizon.Milliseconds()) / 1000
			sum += math.Abs(r.Forecast.Total - (2 + 2*math.Abs(float64(at%240)-120)/120))
		}
		return sum
	}
	assert.Less(t, off(Options{Params: params, Learn: true}), off(Options{Params: params})/2)
}

// Bounds are those of the time of a run, ahead of their window by the horizon, and what is not to
// be learned is not.
func TestRunsHaveTheBoundsOfTheirTime(t *testing.T) {
	began := time.Date(2026, time.March, 29, 0, 0, 0, 0, time.UTC) // clocks go forward at 1:00
	var events []event
	for s := range int64(3 * 3600) {
		at := began.UnixMilli() + s*1000
		events = append(events, event{kind: sample, instance: []byte("a"), at: at, received: at,
			value: 1.4 + math.Sin(float64(s)/300)})
		if s >= 60 && s%15 == 0 {
			events = append(events, runAt(at))
		}
	}
	events = append(events, starts("a", began.UnixMilli()))
	// 2:30 does not come: it is at 1:00
	window, err := schedule.Recurring("30 2 * * *", "Europe/Berlin", 30*time.Minute)
	require.NoError(t, err)
	params := pipeline.AdaptiveParams()
	params.Threshold, params.Max = 0.7, 20
	e := schedule.Entry{Name: "event", Window: window, Min: new(12), Unlearned: true}
	usual := pipeline.Bounds{Min: params.Min, Max: params.Max, Lateness: params.Lateness}
	recording := recordingOf(t, events)
	scheduled := replayed(t, recording, Options{Params: params, Learn: true,
		Schedules: schedule.New(usual, []schedule.Entry{e})})
	e.Unlearned = false
	learned := replayed(t, recording, Options{Params: params, Learn: true,
		Schedules: schedule.New(usual, []schedule.Entry{e})})
	differ := 0
	for i, r := range scheduled {
		require.NoError(t, r.Err)
		minute := float64(r.Now-began.UnixMilli()) / 60_000
		ahead := r.Forecast.Horizon.Minutes()
		assert.Equal(t, minute >= 60-ahead && minute < 90, r.Decision.Desired == 12, "minute %v: %d", minute,
			r.Decision.Desired)
		same := r.Forecast.Total == learned[i].Forecast.Total
		assert.True(t, same || minute > 60, "minute %v", minute)
		if !same {
			differ++
		}
	}
	assert.Greater(t, differ, 100, "what is learned in the window changes the forecasts after it")
}
