package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	strictjson "sigs.k8s.io/json"

	"github.com/foresail/foresail/pipeline"
)

// kind is the kind of an event.
type kind int

const (
	lifecycle kind = iota // the start or the end of an instance, or both
	sample
	demand
	target
	run
)

// event is one line. The kind decides which fields are set.
type event struct {
	kind       kind
	instance   []byte // lifecycle, sample; valid until the next line is parsed
	start, end int64  // lifecycle; pipeline.Never if the line has none
	at         int64  // sample, demand: when measured; target: from when on; run: now
	received   int64  // sample, demand
	value      float64
	count      int // target
}

// fields holds the members of one line as they were written, nil where the line has none.
type fields struct {
	Instance json.RawMessage `json:"instance"`
	Start    json.RawMessage `json:"start"`
	End      json.RawMessage `json:"end"`
	T        json.RawMessage `json:"t"`
	V        json.RawMessage `json:"v"`
	Received json.RawMessage `json:"received"`
	Demand   json.RawMessage `json:"demand"`
	Target   json.RawMessage `json:"target"`
	At       json.RawMessage `json:"at"`
	Run      json.RawMessage `json:"run"`
}

// set is a set of fields, one bit each.
type set uint

const (
	fInstance set = 1 << iota
	fStart
	fEnd
	fT
	fV
	fReceived
	fDemand
	fTarget
	fAt
	fRun
)

// fieldNames follow the order of the bits of a set.
var fieldNames = [...]string{"instance", "start", "end", "t", "v", "received", "demand", "target", "at", "run"}

func (f *fields) present() set {
	var s set
	for i, raw := range [...]json.RawMessage{f.Instance, f.Start, f.End, f.T, f.V, f.Received, f.Demand, f.Target, f.At,
		f.Run} {
		if len(raw) > 0 {
			s |= 1 << i
		}
	}
	return s
}

// reset empties the fields and keeps their memory for the next line.
func (f *fields) reset() {
	for _, raw := range [...]*json.RawMessage{&f.Instance, &f.Start, &f.End, &f.T, &f.V, &f.Received, &f.Demand,
		&f.Target, &f.At, &f.Run} {
		*raw = (*raw)[:0]
	}
}

func (s set) String() string {
	var names []string
	for i, name := range fieldNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// shapes are the kinds of lines by the fields they must and may have.
var shapes = []struct {
	kind               kind
	required, optional set
}{
	{sample, fInstance | fT | fV, fReceived},
	{lifecycle, fInstance | fStart, fEnd},
	{lifecycle, fInstance | fEnd, 0},
	{demand, fDemand | fT, fReceived},
	{target, fTarget | fAt, 0},
	{run, fRun, 0},
}

const acceptedShapes = "those of one kind of line: (instance, start and/or end), (instance, t, v[, received]), (demand, t[, received]), (target, at) or (run)"

func (s set) kind() (kind, error) {
	for _, shape := range shapes {
		if s&shape.required == shape.required && s&^(shape.required|shape.optional) == 0 {
			return shape.kind, nil
		}
	}
	return 0, &pipeline.FieldError{Field: "fields", Value: "(" + s.String() + ")", Accept: acceptedShapes}
}

// parser reads lines. It keeps memory between them.
type parser struct {
	fields fields
	err    error // of the fields of this line, the first
}

// parse reads one line, which is not blank.
func (p *parser) parse(line []byte) (event, error) {
	p.fields.reset()
	p.err = nil
	if err := unmarshal(line, &p.fields); err != nil {
		return event{}, err
	}
	f := &p.fields
	present := f.present()
	k, err := present.kind()
	if err != nil {
		return event{}, err
	}
	e := event{kind: k}
	switch k {
	case lifecycle:
		e.instance = p.id(f.Instance)
		e.start = p.optionalTime("start", f.Start, pipeline.Never)
		e.end = p.optionalTime("end", f.End, pipeline.Never)
	case sample:
		e.instance = p.id(f.Instance)
		e.at, e.value = p.time("t", f.T), p.number("v", f.V)
		e.received = p.optionalTime("received", f.Received, e.at)
	case demand:
		e.at, e.value = p.time("t", f.T), p.number("demand", f.Demand)
		e.received = p.optionalTime("received", f.Received, e.at)
	case target:
		e.at, e.count = p.time("at", f.At), p.count("target", f.Target)
	case run:
		e.at = p.time("run", f.Run)
	}
	return e, p.err
}

// unmarshal reads one JSON object and rejects fields that are unknown or given twice. Names are
// case-sensitive.
func unmarshal(line []byte, f *fields) error {
	strict, err := strictjson.UnmarshalStrict(line, f)
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("a JSON %s: must be a JSON object", wrongType.Value)
	}
	if err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	if len(strict) > 0 {
		return fmt.Errorf("%w: must be %s, each at most once", errors.Join(strict...),
			strings.Join(fieldNames[:], ", "))
	}
	return nil
}

// reject records what is wrong with a field, unless an earlier field was wrong.
func (p *parser) reject(field string, raw json.RawMessage, accept string) {
	if p.err == nil {
		p.err = &pipeline.FieldError{Field: field, Value: string(raw), Accept: accept}
	}
}

func (p *parser) id(raw json.RawMessage) []byte {
	const accept = "a string that is not empty"
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		if len(raw) == 2 {
			p.reject("instance", raw, accept)
		}
		return raw[1 : len(raw)-1]
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || s == "" {
		p.reject("instance", raw, accept)
	}
	return []byte(s)
}

// maxTime bounds times to what a float64, and so every reader of JSON, holds exactly.
const maxTime = 1 << 53

func (p *parser) time(field string, raw json.RawMessage) int64 {
	t, ok := whole(raw)
	if !ok || t < -maxTime || t > maxTime {
		p.reject(field, raw, "a whole number of milliseconds between -2^53 and 2^53")
	}
	return t
}

func (p *parser) optionalTime(field string, raw json.RawMessage, missing int64) int64 {
	if len(raw) == 0 {
		return missing
	}
	return p.time(field, raw)
}

func (p *parser) count(field string, raw json.RawMessage) int {
	n, ok := whole(raw)
	if !ok || n < 0 || n > math.MaxInt32 {
		p.reject(field, raw, "a whole number of instances between 0 and 2147483647")
	}
	return int(n)
}

func (p *parser) number(field string, raw json.RawMessage) float64 {
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		p.reject(field, raw, "a finite number")
	}
	return v
}

// whole reads an integer, also one written as 1e3 or 1000.0, which some writers of JSON do.
func whole(raw json.RawMessage) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > maxTime {
		return 0, false
	}
	return int64(v), true
}
