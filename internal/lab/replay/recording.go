package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/foresail/foresail/pipeline"
)

// Recording is what was recorded, ready to be replayed, any number of times.
type Recording struct {
	members []member
	index   map[string]int32 // of members, by ID
	samples []arrival        // sorted by when they were received, then by line
	targets []planned        // sorted by time, unique
	runs    []int64          // sorted
}

// member is one instance as its own lines describe it.
type member struct {
	id                 string
	start, end         int64 // pipeline.Never if no line has it
	startLine, endLine int
}

// demandSeries stands in an arrival for the series of external demand, which is no member's.
const demandSeries int32 = -1

// arrival is one sample of a member, or of demand.
type arrival struct {
	received int64
	sample   pipeline.Sample
	member   int32
	line     int32
}

// planned is the target count from a time on.
type planned struct {
	at    int64
	count int
}

// LineError names the line of the input that cannot be used, and the reason.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// maxLine bounds the length of a line, so that a file that is not JSON Lines does not fill the memory.
const maxLine = 1 << 20

// Read reads a recording to its end. Where a line cannot be used it stops, with a *LineError, and
// returns what the lines before it say. Blank lines are skipped.
func Read(r io.Reader) (*Recording, error) {
	rec := &Recording{index: map[string]int32{}}
	err := rec.read(r)
	rec.sort()
	return rec, err
}

func (r *Recording) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	var p parser
	number := 1
	for ; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		e, err := p.parse(line)
		if err == nil {
			err = r.add(e, number)
		}
		if err != nil {
			return &LineError{Line: number, Err: err}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return &LineError{Line: number, Err: fmt.Errorf("the line is too long: must be at most %d bytes", maxLine)}
	}
	if lines.Err() != nil {
		return &LineError{Line: number, Err: lines.Err()}
	}
	return nil
}

func (r *Recording) add(e event, line int) error {
	switch e.kind {
	case lifecycle:
		return r.members[r.memberOf(e.instance)].add(e, line)
	case sample, demand:
		series := demandSeries
		if e.kind == sample {
			series = r.memberOf(e.instance)
		}
		s := pipeline.Sample{T: e.at, V: e.value}
		r.samples = append(r.samples, arrival{received: e.received, sample: s, member: series, line: int32(line)})
	case target:
		r.targets = append(r.targets, planned{at: e.at, count: e.count})
	case run:
		r.runs = append(r.runs, e.at)
	}
	return nil
}

func (r *Recording) memberOf(id []byte) int32 {
	if i, known := r.index[string(id)]; known {
		return i
	}
	i := int32(len(r.members))
	r.members = append(r.members, member{id: string(id), start: pipeline.Never, end: pipeline.Never})
	r.index[string(id)] = i
	return i
}

// add takes a line on the start or the end. An ID stands for one life, so each may be given once.
func (m *member) add(e event, line int) error {
	if e.start != pipeline.Never {
		if m.startLine != 0 {
			return m.again("start", e.start, m.start, m.startLine)
		}
		m.start, m.startLine = e.start, line
	}
	if e.end != pipeline.Never {
		if m.endLine != 0 {
			return m.again("end", e.end, m.end, m.endLine)
		}
		m.end, m.endLine = e.end, line
	}
	if m.startLine != 0 && m.endLine != 0 && m.end < m.start {
		return m.reversed(line)
	}
	return nil
}

func (m *member) again(field string, value, earlier int64, line int) error {
	accept := fmt.Sprintf("given once for instance %q, and line %d gives %d; an instance that comes back needs an ID of its own", m.id, line, earlier)
	return &pipeline.FieldError{Field: field, Value: value, Accept: accept}
}

func (m *member) reversed(line int) error {
	if line == m.startLine && line != m.endLine {
		return &pipeline.FieldError{Field: "start", Value: m.start,
			Accept: fmt.Sprintf("at most the end of instance %q, which line %d gives as %d", m.id, m.endLine, m.end)}
	}
	return &pipeline.FieldError{Field: "end", Value: m.end,
		Accept: fmt.Sprintf("at least the start of instance %q, which line %d gives as %d", m.id, m.startLine, m.start)}
}

// sort brings events into the order in which a replay meets them.
func (r *Recording) sort() {
	slices.SortFunc(r.samples, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.received, b.received), cmp.Compare(a.line, b.line))
	})
	slices.Sort(r.runs)
	slices.SortStableFunc(r.targets, func(a, b planned) int { return cmp.Compare(a.at, b.at) })
	r.targets = lastOfEach(r.targets)
}

// lastOfEach keeps, in place, the last of neighbours that share a time.
func lastOfEach(all []planned) []planned {
	kept := 0
	for _, p := range all {
		if kept > 0 && all[kept-1].at == p.at {
			kept--
		}
		all[kept] = p
		kept++
	}
	return all[:kept]
}

// visibleFrom returns the first time at which a run makes use of the sample, by which it must have
// been received: the pipeline drops samples more than an interval later than now.
func (a *arrival) visibleFrom(interval int64) int64 { return max(a.received, a.sample.T-interval) }

// visible returns the samples in the order in which they become visible to runs, and of those that
// do so together in the order they were received.
func (r *Recording) visible(interval int64) []arrival {
	order := func(a, b arrival) int { return cmp.Compare(a.visibleFrom(interval), b.visibleFrom(interval)) }
	if slices.IsSortedFunc(r.samples, order) {
		return r.samples
	}
	samples := slices.Clone(r.samples)
	slices.SortStableFunc(samples, order)
	return samples
}
