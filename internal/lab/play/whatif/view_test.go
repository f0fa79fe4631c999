package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/api/v1alpha1"
)

var checkout = types.NamespacedName{Namespace: "shop", Name: "checkout"}

// answered is what a replica answers of a recorded hour.
func answered(t *testing.T, points []Point) []byte {
	t.Helper()
	columns := map[string][]any{"at": {}, "level": {}, "ready": {}, "replicas": {}}
	for i, p := range points {
		columns["at"] = append(columns["at"], p.At.Unix())
		columns["ready"], columns["replicas"] = append(columns["ready"], p.Ready), append(columns["replicas"],
			p.Replicas)
		if i == 0 {
			columns["level"] = append(columns["level"], nil)
			continue
		}
		columns["level"] = append(columns["level"], p.Load)
	}
	text, err := json.Marshal(map[string]any{"metric": map[string]any{"threshold": 0.7}, "startupSeconds": 23.6,
		"history": columns})
	require.NoError(t, err)
	return text
}

func viewOf(t *testing.T, spec string) *View {
	t.Helper()
	answer := answered(t, hour(0.7))
	parsed, err := params.ParseSpec([]byte(spec))
	require.NoError(t, err)
	return NewView(
		func(context.Context, types.NamespacedName) ([]byte, error) { return answer, nil },
		func(context.Context, types.NamespacedName) (v1alpha1.PredictedMetricSpec, error) { return parsed, nil },
	)
}

const theSpec = "{threshold: 700m, minReplicas: 2, maxReplicas: 20, saturation: 1, schedules: [{name: night, schedule: '0 0 * * *', duration: 1h, minReplicas: 1}]}"

func given(pairs ...string) url.Values {
	values := url.Values{Threshold: {"700m"}, MinReplicas: {"2"}, MaxReplicas: {"20"}, StartupTime: {"24s"},
		Lateness: {"1%"}}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

func TestAnswer(t *testing.T) {
	v := viewOf(t, theSpec)
	a := v.Answer(t.Context(), checkout, nil)
	assert.Equal(t, Answer{Values: map[string]string{Threshold: "700m", MinReplicas: "2", MaxReplicas: "20",
		StartupTime: "24s", Lateness: "1%"}}, a)

	a = v.Answer(t.Context(), checkout, given())
	require.Empty(t, a.Problem)
	require.NotNil(t, a.Result)
	assert.Equal(t, began.Add(step).UTC(), a.Result.From.UTC(), "the first load is not known")
	assert.True(t, a.Result.Gaps)
	assert.Contains(t, a.Result.Assumed[0], "take 24s to start")

	more := v.Answer(t.Context(), checkout, given(MinReplicas, "9"))
	require.Empty(t, more.Problem)
	assert.Greater(t, more.Result.Runs[1].PodHours, a.Result.Runs[1].PodHours)
	assert.Equal(t, "2", more.Values[MinReplicas])

	unlimited := v.Answer(t.Context(), checkout, given(MaxReplicas, ""))
	require.Empty(t, unlimited.Problem)
	assert.Equal(t, a.Result.Runs[3], unlimited.Result.Runs[3])
}

// Values are rejected in the words that a spec is rejected with.
func TestValuesAreValidated(t *testing.T) {
	v := viewOf(t, theSpec)
	for _, c := range []struct{ name, value, want string }{
		{Threshold, "0", "spec.threshold: 0: must be"},
		{Threshold, "high", "spec.threshold"},
		{Threshold, "", "spec.threshold"},
		{Threshold, "1", "spec.saturation: 1: must be above threshold"},
		{MaxReplicas, "1", "spec.maxReplicas: 1: must be at least minReplicas"},
		{MaxReplicas, "many", "spec.maxReplicas"},
		{MinReplicas, "0", "spec.minReplicas: 0: must be at least 1"},
		{StartupTime, "soon", "spec.startupTime"},
		{StartupTime, "-1s", "spec.startupTime"},
		{Lateness, "99%", `spec.lateness: 99%: must be a percentage above 0% and up to 50%`},
		{"window", "1m", `"window": must be one of threshold`},
		{Threshold, "0000000000000000000000000000000000.7", "threshold: must have at most 32 characters"},
	} {
		a := v.Answer(t.Context(), checkout, given(c.name, c.value))
		assert.Contains(t, a.Problem, c.want, "%s=%s", c.name, c.value)
		assert.Nil(t, a.Result)
	}
}

// Who may not read the PredictedMetric plays with the defaults.
func TestWithoutTheSpec(t *testing.T) {
	v := viewOf(t, theSpec)
	v.Spec = func(context.Context, types.NamespacedName) (v1alpha1.PredictedMetricSpec, error) {
		return v1alpha1.PredictedMetricSpec{}, errors.New("forbidden")
	}
	a := v.Answer(t.Context(), checkout, nil)
	require.Empty(t, a.Problem)
	assert.Contains(t, a.Note, "its other fields are taken to be the defaults: forbidden")
	assert.Equal(t, map[string]string{Threshold: "0.7", MinReplicas: "1", MaxReplicas: "", StartupTime: "24s",
		Lateness: "1%"}, a.Values)
	a = v.Answer(t.Context(), checkout, given())
	require.Empty(t, a.Problem)
	assert.Len(t, a.Result.Runs, 4)
}

func TestWithoutAHistory(t *testing.T) {
	v := viewOf(t, theSpec)
	v.History = func(context.Context, types.NamespacedName) ([]byte, error) {
		return nil, errors.New("no replica answers")
	}
	assert.Equal(t, "What was recorded cannot be read: no replica answers",
		v.Answer(t.Context(), checkout, given()).Problem)
	v.History = func(context.Context, types.NamespacedName) ([]byte, error) { return []byte(`{}`), nil }
	assert.Contains(t, v.Answer(t.Context(), checkout, given()).Problem,
		"less than 10 minutes of the load are recorded without a gap")
}

// One is played at a time; who leaves does not wait.
func TestOneIsPlayedAtATime(t *testing.T) {
	v := viewOf(t, theSpec)
	synctest.Test(t, func(t *testing.T) {
		v.slot = make(chan struct{}, 1)
		v.slot <- struct{}{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := v.Answer(ctx, checkout, given())
		assert.Equal(t, context.DeadlineExceeded.Error(), a.Problem)
		<-v.slot
		assert.Empty(t, v.Answer(t.Context(), checkout, given()).Problem)
		assert.Empty(t, v.slot)
	})
}
