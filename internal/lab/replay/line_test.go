package replay

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

func TestParseReadsEveryKindOfLine(t *testing.T) {
	never := pipeline.Never
	for line, want := range map[string]event{
		`{"instance":"a","start":0}`: {kind: lifecycle, instance: []byte("a"), start: 0,
			end: never},
		`{"instance":"a","end":120000}`: {kind: lifecycle, instance: []byte("a"),
			start: never, end: 120000},
		`{"end":-5,"start":-10,"instance":"a"}`: {kind: lifecycle, instance: []byte("a"),
			start: -10, end: -5},
		`{"instance":"a","t":1001,"v":0.4}`: {kind: sample, instance: []byte("a"), at: 1001,
			received: 1001, value: 0.4},
		`{"instance":"a","t":1001,"v":0.4,"received":5000}`: {kind: sample, instance: []byte("a"), at: 1001,
			received: 5000, value: 0.4},
		`{"instance":"a\"\u00e9","t":1e3,"v":-1e-3,"received":9.0}`: {kind: sample, instance: []byte(`a"é`), at: 1000,
			received: 9, value: -0.001},
		`{"demand":0.5,"t":1000}`: {kind: demand, at: 1000, received: 1000,
			value: 0.5},
		`{"demand":2,"t":1000,"received":3000}`: {kind: demand, at: 1000, received: 3000, value: 2},
		`{"target":4,"at":0}`:                   {kind: target, count: 4},
		` { "run" : 15000 } `:                   {kind: run, at: 15000},
	} {
		var p parser
		got, err := p.parse([]byte(line))
		require.NoError(t, err, line)
		assert.Equal(t, want, got, line)
	}
}

func TestParseErrorsNameFieldValueAndAcceptedForm(t *testing.T) {
	const milliseconds = "must be a whole number of milliseconds between -2^53 and 2^53"
	for _, c := range []struct{ line, want string }{
		{`{`, "not a JSON object: unexpected end of JSON input"},
		{`hello`, "not a JSON object: invalid character 'h' looking for beginning of value"},
		{`{"run":1}{"run":2}`, "not a JSON object: invalid character '{' after top-level value"},
		{`[{"run":1}]`, "a JSON array: must be a JSON object"},
		{`15000`, "a JSON number: must be a JSON object"},
		{`null`, "fields: (): must be those of one kind of line"},
		{`{}`, "fields: (): must be those of one kind of line"},

		{`{"run":1,"speed":2}`, `unknown field "speed": must be instance, start, end, t, v, received, demand, target, at, run, each at most once`},
		{`{"Run":1}`, `unknown field "Run"`},
		{`{"run":1,"run":1}`, `duplicate field "run"`},

		{`{"run":1,"target":4,"at":0}`, "fields: (target, at, run): must be those of one kind of line"},
		{`{"instance":"a","start":0,"t":1,"v":2}`, "fields: (instance, start, t, v): must be"},
		{`{"instance":"a","t":1,"v":2,"demand":3}`, "fields: (instance, t, v, demand): must be"},
		{`{"instance":"a"}`, "fields: (instance): must be"},
		{`{"instance":"a","t":1}`, "fields: (instance, t): must be"},
		{`{"t":1,"v":1}`, "fields: (t, v): must be"},
		{`{"target":4}`, "fields: (target): must be"},
		{`{"demand":1}`, "fields: (demand): must be"},
		{`{"run":1,"received":2}`, "fields: (received, run): must be"},
		{`{"instance":"a","start":1,"received":2}`, "fields: (instance, start, received): must be"},

		{`{"instance":1,"start":0}`, "instance: 1: must be a string that is not empty"},
		{`{"instance":"","start":0}`, `instance: "": must be a string that is not empty`},
		{`{"instance":null,"start":0}`, "instance: null: must be a string"},
		{`{"run":"15000"}`, `run: "15000": ` + milliseconds},
		{`{"run":1.5}`, "run: 1.5: " + milliseconds},
		{`{"run":null}`, "run: null: " + milliseconds},
		{`{"run":9007199254740993}`, "run: 9007199254740993: " + milliseconds},
		{`{"run":1e300}`, "run: 1e300: " + milliseconds},
		{`{"instance":"a","start":true}`, "start: true: " + milliseconds},
		{`{"instance":"a","end":[1]}`, "end: [1]: " + milliseconds},
		{`{"instance":"a","t":{},"v":1}`, "t: {}: " + milliseconds},
		{`{"instance":"a","t":1,"v":1,"received":null}`, "received: null: " + milliseconds},
		{`{"instance":"a","t":1,"v":"0.4"}`, `v: "0.4": must be a finite number`},
		{`{"instance":"a","t":1,"v":1e999}`, "v: 1e999: must be a finite number"},
		{`{"demand":null,"t":1}`, "demand: null: must be a finite number"},
		{`{"target":-1,"at":0}`, "target: -1: must be a whole number of instances between 0 and 2147483647"},
		{`{"target":2.5,"at":0}`, "target: 2.5: must be a whole number of instances"},
		{`{"target":4,"at":"now"}`, `at: "now": ` + milliseconds},
		{`{"instance":2,"t":"x","v":"y"}`, "instance: 2: must be"},
	} {
		var p parser
		_, err := p.parse([]byte(c.line))
		assert.ErrorContains(t, err, c.want, c.line)
	}
}

func TestParserForgetsTheLineBefore(t *testing.T) {
	var p parser
	_, err := p.parse([]byte(`{"instance":"a","t":1,"v":"x","received":3}`))
	require.Error(t, err)
	got, err := p.parse([]byte(`{"instance":"a","t":1,"v":2}`))
	require.NoError(t, err)
	assert.Equal(t, int64(1), got.received)
}

// encode writes an event as a line.
func encode(t testing.TB, e event) string {
	line := map[string]any{}
	switch e.kind {
	case lifecycle:
		line["instance"] = string(e.instance)
		if e.start != pipeline.Never {
			line["start"] = e.start
		}
		if e.end != pipeline.Never {
			line["end"] = e.end
		}
	case sample:
		line["instance"], line["t"], line["v"], line["received"] = string(e.instance), e.at, e.value, e.received
	case demand:
		line["demand"], line["t"], line["received"] = e.value, e.at, e.received
	case target:
		line["target"], line["at"] = e.count, e.at
	case run:
		line["run"] = e.at
	}
	text, err := json.Marshal(line)
	require.NoError(t, err)
	return string(text)
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{
		`{"instance":"a","start":0,"end":1}`, `{"instance":"\ud800\\","t":1e3,"v":-0.4,"received":5e3}`,
		`{"demand":1e308,"t":-1}`,
		`{"target":4,"at":0.0}`, `{"run":9007199254740992}`, `{"run":null}`, `{"v":NaN}`, `{"run":1,"run":2}`, "\xff",
		`{"instance":"\xff","end":1}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var p parser
		e, err := p.parse(line)
		if err != nil {
			return
		}
		var object map[string]any
		require.NoError(t, json.Unmarshal(line, &object), "what is accepted is a JSON object")
		for _, at := range []int64{e.at, e.received, e.start, e.end} {
			require.True(t, at == pipeline.Never || at >= -maxTime && at <= maxTime, "%d", at)
		}
		require.False(t, math.IsNaN(e.value) || math.IsInf(e.value, 0))
		if strings.ToValidUTF8(string(e.instance), "") != string(e.instance) {
			return // kept as it is, which JSON cannot say
		}
		text := encode(t, e)
		again, err := p.parse([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, text, encode(t, again))
	})
}
