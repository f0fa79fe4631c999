package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/api/v1alpha1"
)

// View answers what the page asks. It is safe for concurrent use; one request is played at a time.
type View struct {
	// History returns what a replica answers about a PredictedMetric: a dashboard.Detail as JSON.
	History func(ctx context.Context, metric types.NamespacedName) ([]byte, error)
	// Spec returns the spec of a PredictedMetric, or why it cannot be read.
	Spec func(ctx context.Context, metric types.NamespacedName) (v1alpha1.PredictedMetricSpec, error)

	slot chan struct{}
}

// NewView returns a View.
func NewView(history func(context.Context, types.NamespacedName) ([]byte, error),
	spec func(context.Context, types.NamespacedName) (v1alpha1.PredictedMetricSpec, error)) *View {
	return &View{History: history, Spec: spec, slot: make(chan struct{}, 1)}
}

// The parameters that can be changed, as the page sends them.
const (
	Threshold   = "threshold"
	MinReplicas = "minReplicas"
	MaxReplicas = "maxReplicas"
	StartupTime = "startupTime"
	Lateness    = "lateness"
)

// Answer has what the parameters are, and what was played with others. Problem says why nothing was.
type Answer struct {
	Problem string            `json:"problem,omitempty"`
	Note    string            `json:"note,omitempty"` // what of the spec is not known
	Values  map[string]string `json:"values"`
	Result  *Result           `json:"result"`
}

// Answer plays the recorded hour with the values. Without any it says what they are.
func (v *View) Answer(ctx context.Context, metric types.NamespacedName, values url.Values) Answer {
	a := Answer{Values: map[string]string{}}
	answer, err := v.History(ctx, metric)
	var h history
	if err == nil {
		err = json.Unmarshal(answer, &h)
	}
	if err != nil {
		a.Problem = "What was recorded cannot be read: " + err.Error()
		return a
	}
	spec, err := v.Spec(ctx, metric)
	if err != nil {
		a.Note = "The PredictedMetric cannot be read, so its other fields are taken to be the defaults: " + err.Error()
		spec = v1alpha1.PredictedMetricSpec{}
	}
	fields, err := fieldsOf(spec, err == nil)
	if err == nil {
		a.Values, err = h.values(spec, a.Note == "")
	}
	if err == nil && values.Has(Threshold) {
		a.Result, err = v.play(ctx, fields, values, h.points())
	}
	if err != nil {
		a.Problem = err.Error()
	}
	return a
}

func (v *View) play(ctx context.Context, fields map[string]any, values url.Values, recorded []Point) (*Result, error) {
	changed, err := change(fields, values)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(changed)
	if err != nil {
		return nil, err
	}
	spec, err := params.ParseSpec(text)
	if err != nil {
		return nil, err
	}
	p, err := params.FromSpec(spec)
	if err != nil {
		return nil, err
	}
	select {
	case v.slot <- struct{}{}:
		defer func() { <-v.slot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return Play(ctx, p, recorded)
}

// fieldsOf returns the fields of a spec, those left out that have no say in what is played.
func fieldsOf(spec v1alpha1.PredictedMetricSpec, known bool) (map[string]any, error) {
	fields := map[string]any{}
	if !known {
		return fields, nil
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for _, name := range []string{"schedules", "autoscaler", "capacityBuffer"} {
		delete(fields, name)
	}
	return fields, nil
}

// maxValue bounds a value, in bytes.
const maxValue = 32

// change sets what was given. What is empty is absent from the spec.
func change(fields map[string]any, values url.Values) (map[string]any, error) {
	out := maps.Clone(fields)
	set := func(name, value string, whole bool) {
		delete(out, name)
		if value == "" {
			return
		}
		out[name] = value
		if n, err := strconv.ParseInt(value, 10, 32); whole && err == nil {
			out[name] = n
		}
	}
	for name := range values {
		value := strings.TrimSpace(values.Get(name))
		if len(value) > maxValue {
			return nil, fmt.Errorf("%s: must have at most %d characters", name, maxValue)
		}
		switch name {
		case MinReplicas, MaxReplicas:
			set(name, value, true)
		case Threshold, StartupTime, Lateness:
			set(name, value, false)
		default:
			return nil, fmt.Errorf("%.32q: must be one of threshold, minReplicas, maxReplicas, startupTime, lateness",
				name)
		}
	}
	return out, nil
}

// history is what is read of a dashboard.Detail. What is null is not known.
type history struct {
	Startup *float64 `json:"startupSeconds"`
	Metric  struct {
		Threshold *float64 `json:"threshold"`
	} `json:"metric"`
	History struct {
		At       []int64    `json:"at"`
		Level    []*float64 `json:"level"`
		Ready    []*int     `json:"ready"`
		Replicas []*int     `json:"replicas"`
	} `json:"history"`
}

// values are the parameters as they are.
func (h *history) values(spec v1alpha1.PredictedMetricSpec, known bool) (map[string]string, error) {
	spec.Default()
	out := map[string]string{MinReplicas: fmt.Sprint(*spec.MinReplicas), MaxReplicas: "", Lateness: spec.Lateness,
		StartupTime: spec.StartupTime.Duration.String()}
	if spec.MaxReplicas != nil {
		out[MaxReplicas] = fmt.Sprint(*spec.MaxReplicas)
	}
	if h.Startup != nil {
		out[StartupTime] = (time.Duration(math.Round(*h.Startup)) * time.Second).String()
	}
	switch {
	case known:
		out[Threshold] = spec.Threshold.String()
	case h.Metric.Threshold != nil:
		out[Threshold] = strconv.FormatFloat(*h.Metric.Threshold, 'g', -1, 64)
	default:
		return out, errors.New("the threshold is not known")
	}
	return out, nil
}

func (h *history) points() []Point {
	c := &h.History
	n := min(len(c.At), len(c.Level), len(c.Ready), len(c.Replicas))
	points := make([]Point, n)
	for i := range points {
		points[i] = Point{At: time.Unix(c.At[i], 0), Load: math.NaN(), Ready: -1, Replicas: -1}
		if c.Level[i] != nil {
			points[i].Load = *c.Level[i]
		}
		if c.Ready[i] != nil {
			points[i].Ready = *c.Ready[i]
		}
		if c.Replicas[i] != nil {
			points[i].Replicas = *c.Replicas[i]
		}
	}
	return points
}
