package dashboard

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
)

// Detail is one PredictedMetric with its history.
type Detail struct {
	Time   time.Time `json:"time"` // by the clock of the replica
	Metric Row       `json:"metric"`

	Message        string `json:"message"`               // the decision or why there is none, as a sentence
	TargetDesired  Count  `json:"targetDesired"`         // by all PredictedMetrics of the target
	DrivenBy       string `json:"drivenBy,omitempty"`    // the one that desires them
	Metrics        int    `json:"metricsOfTarget"`       // how many the target has
	Level          Number `json:"level"`                 // the load of all pods together, smoothed
	Total          Number `json:"total"`                 // the same, predicted
	Planned        Number `json:"planned"`               // what replicas are needed for
	Horizon        Number `json:"horizonSeconds"`        // how far ahead Total is
	StartupTime    Number `json:"startupSeconds"`        // how long pods take to start
	Startups       int    `json:"startupsMeasured"`      // 0: that is assumed
	Source         string `json:"source,omitempty"`      // such as pods
	SourceError    string `json:"sourceError,omitempty"` // why it cannot be read
	SampleInterval Number `json:"sampleIntervalSeconds"` // between two samples of a pod
	SampleAge      Number `json:"sampleAgeSeconds"`      // of the newest sample
	UnreadablePods int    `json:"unreadablePods"`        // whose last reading failed
	ErrorRatio     Number `json:"forecastErrorRatio"`    // error over that of the present load taken to stay, last day

	Step    int     `json:"stepSeconds"` // between two points
	History History `json:"history"`
}

// History has the points of the last hour, or of the requested time, as columns of equal length.
type History struct {
	At        []uint32 `json:"at"` // seconds since 1970
	Level     []Number `json:"level"`
	Total     []Number `json:"total"` // predicted for At + Horizon
	Planned   []Number `json:"planned"`
	Capacity  []Number `json:"capacity"` // what the replicas that the target is set to hold at the threshold
	PerPod    []Number `json:"loadPerPod"`
	Predicted []Number `json:"predictedPerPod"`
	Threshold []Number `json:"threshold"`
	Ready     []Count  `json:"ready"`
	Replicas  []Count  `json:"replicas"`
	Desired   []Count  `json:"desired"`
	Horizon   []uint16 `json:"horizonSeconds"`
	Reason    []string `json:"reason"`
	Message   []string `json:"message"`
}

// Number is null in JSON if it is not known: NaN, or infinite.
type Number float64

// MarshalJSON writes six significant digits.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return strconv.AppendFloat(nil, v, 'g', 6, 64), nil
	}
	return []byte("null"), nil
}

// Count is null in JSON if it is not known: negative.
type Count int32

// MarshalJSON writes a whole number.
func (c Count) MarshalJSON() ([]byte, error) {
	if c < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(c), 10), nil
}

// maxMessage bounds the texts of others, in bytes.
const maxMessage = 1024

// clip shortens a text to maxMessage.
func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func detailOf(s *snapshot.Snapshot, points []point, now time.Time) Detail {
	d := Detail{
		Time: now, Metric: rowOf(s, now), Metrics: s.Combined.Metrics, Source: s.Source, TargetDesired: -1,
		SampleInterval: seconds(s.SampleInterval), SampleAge: unknown, UnreadablePods: len(s.Failing),
		StartupTime: seconds(s.StartupTime), Startups: s.StartupsMeasured, ErrorRatio: unknown,
		Level: unknown, Total: unknown, Planned: unknown, Horizon: unknown,
		Step: int(Step / time.Second), History: historyOf(points),
	}
	if !s.NewestSample.IsZero() {
		d.SampleAge = Number(max(0, now.Sub(s.NewestSample)).Seconds())
	}
	if s.SourceErr != nil {
		d.SourceError = clip(s.SourceErr.Error())
	}
	if day := s.Accuracy.LastDay; day.Judged > 0 {
		d.ErrorRatio = Number(day.Ratio())
	}
	if s.Combined.Decided() {
		d.TargetDesired, d.DrivenBy = Count(whole32(s.Combined.Desired)), s.Combined.DrivenBy
	}
	d.Message = cmp.Or(d.Metric.Cause, clip(s.Explain()))
	if serving.Check(s, now) != nil {
		return d
	}
	f := &s.Forecast
	d.Level, d.Total, d.Planned, d.Horizon = Number(f.Level), Number(f.Total),
		Number(f.PlannedLoad), Number(f.Horizon.Seconds())
	return d
}

// causeOf returns why there is no forecast to serve, or one without a decision, and "" if there is a decision.
func causeOf(s *snapshot.Snapshot, now time.Time) string {
	if err := serving.Check(s, now); err != nil {
		if why, ok := errors.AsType[*snapshot.Unavailable](s.Err); ok {
			return clip(why.Message)
		}
		return clip(err.Error())
	}
	if s.HasDecision() {
		return ""
	}
	_, err := serving.Value(serving.Replicas, s)
	return clip(err.Error())
}

// unknown is a Number that is not known.
var unknown = Number(math.NaN())

// seconds of a duration that is unknown if it is 0.
func seconds(d time.Duration) Number {
	if d == 0 {
		return unknown
	}
	return Number(d.Seconds())
}

func historyOf(points []point) History {
	n := len(points)
	h := History{
		At: make([]uint32, n), Level: make([]Number, n), Total: make([]Number, n),
		Planned: make([]Number, n), Capacity: make([]Number, n),
		PerPod: make([]Number, n), Predicted: make([]Number, n), Threshold: make([]Number, n),
		Ready: make([]Count, n), Replicas: make([]Count, n), Desired: make([]Count, n), Horizon: make([]uint16, n),
		Reason: make([]string, n), Message: make([]string, n),
	}
	for i := range points {
		p := &points[i]
		h.At[i], h.Level[i], h.Total[i], h.Planned[i] = p.at, Number(p.level), Number(p.total), Number(p.planned)
		h.Capacity[i] = unknown
		if p.target >= 0 {
			h.Capacity[i] = Number(p.each) * Number(p.target)
		}
		h.PerPod[i], h.Predicted[i], h.Threshold[i] = Number(p.perPod), Number(p.predictedPerPod), Number(p.threshold)
		h.Ready[i], h.Replicas[i], h.Desired[i], h.Horizon[i] = Count(p.ready), Count(p.target), Count(p.desired), p.horizon
		h.Reason[i], h.Message[i] = reasons[p.reason], p.explain()
	}
	return h
}
