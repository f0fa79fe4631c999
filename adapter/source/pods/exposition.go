package pods

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// Limits for parsing a page. Together they bound what a scrape holds, however long its page is.
const (
	maxLine  = 32 << 10 // bytes of a line that is looked at, and of the lines that are parsed at once
	maxNames = 16 << 10 // bytes of metric names remembered for messages
	maxError = 200      // bytes of the parser's message, which quotes the line
	maxType  = 40       // bytes of the type of a metric
)

// selectionSet holds the distinct selections of the readers of an endpoint.
type selectionSet struct {
	selections []*selection     // each once
	metrics    map[string][]int // the selections of each metric
	// the names whose TYPE matters: of these metrics, and of the families they may belong to
	declared map[string]struct{}
}

func newSelectionSet(selections ...*selection) *selectionSet {
	set := &selectionSet{selections: selections, metrics: map[string][]int{}, declared: map[string]struct{}{}}
	for i, s := range selections {
		set.metrics[s.metric] = append(set.metrics[s.metric], i)
		set.declared[s.metric] = struct{}{}
		for _, x := range suffixes {
			if base, ok := strings.CutSuffix(s.metric, x.suffix); ok {
				set.declared[base] = struct{}{}
			}
		}
	}
	return set
}

// page reads one exposition as it arrives, and keeps the series that the selections find on it. Lines
// of other metrics are skipped unparsed, which saves most of the work and prevents that one bad line
// hides the rest.
//
// Prometheus' parser gets the lines of a selected metric in blocks, and always in the text format: its
// OpenMetrics parser would need the whole page.
type page struct {
	selected    *selectionSet
	maxSeries   int // of a metric
	openMetrics bool

	metrics map[string]*metric // the selected ones that are there
	choices []choice           // what each selection finds
	types   map[string]string  // as declared
	names   []byte             // of all metrics, each with a newline
	count   int                // how many
	last    []byte             // the metric of the line before
	ended   bool               // the end mark of OpenMetrics has been seen

	reader  *bufio.Reader
	block   []byte  // lines of one metric that are not parsed yet
	lines   int     // how many
	current *metric // whose lines they are
	labels  labels.Labels
	symbols *labels.SymbolTable
}

// metric is a selected metric on a page.
type metric struct {
	selections []int
	series     int
	shown      []string // the first of them, for messages
	err        error    // why they cannot be read
}

// choice is the series that a selection finds.
type choice struct {
	series int
	shown  []string // the first of them, for messages; unset without matchLabels
	value  float64  // of the first
	time   int64    // of the first, in ms
	timed  bool     // whether it has a time
}

func newPage() *page {
	return &page{
		metrics: map[string]*metric{}, types: map[string]string{},
		reader: bufio.NewReaderSize(nil, maxLine), symbols: labels.NewSymbolTable(),
	}
}

// read reads a page that has a bounded number of series of each selected metric.
func (p *page) read(body io.Reader, selected *selectionSet, maxSeries int, openMetrics bool) error {
	p.reset(body, selected, maxSeries, openMetrics)
	for !p.ended {
		line, err := p.reader.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = p.longLine(line)
			line = nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		p.line(line)
		if errors.Is(err, io.EOF) {
			break
		}
	}
	p.parse()
	if openMetrics && !p.ended {
		return errors.New("the answer is cut short: it lacks the # EOF of OpenMetrics")
	}
	_, err := io.Copy(io.Discard, p.reader) // a connection is used again only if its answer has been read to the end
	return err
}

func (p *page) reset(body io.Reader, selected *selectionSet, maxSeries int, openMetrics bool) {
	p.selected, p.maxSeries, p.openMetrics = selected, maxSeries, openMetrics
	clear(p.metrics)
	clear(p.types)
	clear(p.choices)
	p.choices = slices.Grow(p.choices[:0], len(selected.selections))[:len(selected.selections)]
	p.names, p.count, p.last, p.ended = p.names[:0], 0, p.last[:0], false
	p.block, p.lines, p.current = p.block[:0], 0, nil
	p.reader.Reset(body)
}

// longLine skips the rest of a line that does not fit into the buffer, and records an error if its metric is desired.
func (p *page) longLine(beginning []byte) error {
	name, _ := splitName(bytes.TrimLeft(beginning, " \t"))
	if !bytes.HasPrefix(name, []byte("#")) {
		p.recordName(name)
	}
	if m := p.metric(name); m != nil {
		m.err = fmt.Errorf("a line of more than %d bytes", maxLine)
	}
	for {
		if _, err := p.reader.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// metric returns a selected metric, nil if it is not selected.
func (p *page) metric(name []byte) *metric {
	selections, ok := p.selected.metrics[string(name)]
	if !ok {
		return nil
	}
	m := p.metrics[string(name)]
	if m == nil {
		m = &metric{selections: selections}
		p.metrics[string(name)] = m
	}
	return m
}

// line handles a line, which ends with a newline unless it is the last.
func (p *page) line(line []byte) {
	line = bytes.TrimLeft(line, " \t")
	if len(line) == 0 || line[0] == '\n' {
		return
	}
	if line[0] == '#' {
		p.comment(line)
		return
	}
	name, rest := splitName(line)
	p.recordName(name)
	m := p.metric(name)
	if m == nil || m.err != nil {
		return
	}
	if m.series == p.maxSeries {
		m.err = fmt.Errorf("it has more than %d series", p.maxSeries)
		return
	}
	m.series++
	if m != p.current || len(p.block)+len(line) > maxLine {
		p.parse()
		p.current = m
	}
	m.err = p.appendLine(name, rest)
}

// appendLine adds a line to the block that is parsed together.
func (p *page) appendLine(name, rest []byte) (err error) {
	p.lines++
	p.block = append(p.block, name...)
	switch {
	case p.openMetrics:
		p.block, err = appendOpenMetrics(p.block, rest)
	case !bytes.HasSuffix(rest, []byte("\n")):
		err = errors.New("the page ends within a line")
	default:
		p.block = append(p.block, rest...)
	}
	return err
}

// parse parses the lines that have been added, and gives their series to the selections.
func (p *page) parse() {
	if m := p.current; m != nil && m.err == nil {
		m.err = p.parseBlock()
	}
	p.block, p.lines, p.current = p.block[:0], 0, nil
}

func (p *page) parseBlock() error {
	p.block = slices.Grow(p.block, 1) // the parser adds a byte
	parser := textparse.NewPromParser(p.block, p.symbols, false)
	parsed := 0
	for ; ; parsed++ {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%.*s", maxError, err.Error())
		}
		if entry != textparse.EntrySeries {
			break
		}
		parser.Labels(&p.labels)
		if name, twice := p.labels.HasDuplicateLabelNames(); twice {
			return fmt.Errorf("a series has the label %.100q twice", name)
		}
		p.series(parser.Series())
	}
	if parsed != p.lines { // a quote that spans lines, or a NUL, which ends the parser's input
		return errors.New("a line is broken")
	}
	return nil
}

// series gives the series whose labels were parsed last to the selections of its metric.
func (p *page) series(_ []byte, at *int64, value float64) {
	m := p.current
	if len(m.shown) < shown {
		m.shown = append(m.shown, seriesText(p.labels))
	}
	for _, i := range m.selections {
		s, c := p.selected.selections[i], &p.choices[i]
		if !s.matches(p.labels) {
			continue
		}
		c.series++
		if c.series == 1 {
			c.value, c.timed = value, at != nil
			if c.timed {
				c.time = *at
			}
		}
		if len(s.labels) > 0 && len(c.shown) < shown {
			c.shown = append(c.shown, seriesText(p.labels))
		}
	}
}

// splitName splits a line behind the name of its metric.
func splitName(line []byte) (name, rest []byte) {
	for i, c := range line {
		if c == '{' || c == ' ' || c == '\t' || c == '\n' {
			return line[:i], line[i:]
		}
	}
	return line, nil
}

// recordName keeps the name of a metric for messages.
func (p *page) recordName(name []byte) {
	if bytes.Equal(name, p.last) || len(name) == 0 {
		return
	}
	p.last = append(p.last[:0], name...)
	p.count++
	if len(p.names)+len(name) < maxNames {
		p.names = append(append(p.names, name...), '\n')
	}
}

// comment handles the type of a metric, or the end mark.
func (p *page) comment(line []byte) {
	keyword, rest := nextField(line[1:])
	switch string(keyword) {
	case "TYPE":
		name, rest := nextField(rest)
		if _, ok := p.selected.declared[string(name)]; ok {
			declared, _ := nextField(rest)
			p.types[string(name)] = strings.ToLower(string(declared[:min(len(declared), maxType)]))
		}
	case "EOF":
		p.ended = p.openMetrics
	}
}

// nextField returns the first of the fields of a line that blanks separate, and what follows it.
func nextField(line []byte) (field, rest []byte) {
	line = bytes.TrimLeft(line, " \t")
	if end := bytes.IndexAny(line, " \t\r\n"); end >= 0 {
		return line[:end], line[end:]
	}
	return line, nil
}

// appendOpenMetrics appends what follows the metric name in a line of OpenMetrics in the Prometheus
// text format: without exemplar, and with the time in milliseconds.
func appendOpenMetrics(out, rest []byte) ([]byte, error) {
	end := labelsEnd(rest)
	out = append(out, rest[:end]...)
	value, rest := nextField(rest[end:])
	out = append(append(out, ' '), value...)
	if timestamp, _ := nextField(rest); len(timestamp) > 0 && timestamp[0] != '#' {
		seconds, err := strconv.ParseFloat(string(timestamp), 64)
		if err != nil || math.IsNaN(seconds) || seconds < 0 || seconds > maxSeconds {
			return out, fmt.Errorf("timestamp: %.40q: must be a time in seconds", timestamp)
		}
		out = strconv.AppendInt(append(out, ' '), int64(math.Round(seconds*1000)), 10)
	}
	return append(out, '\n'), nil
}

// maxSeconds is the latest time that is accepted, about the year 33,000.
const maxSeconds = 1e12

// labelsEnd returns where the labels at the start of a line end, 0 without labels.
func labelsEnd(line []byte) int {
	if len(line) == 0 || line[0] != '{' {
		return 0
	}
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i + 1
		}
	}
	return len(line)
}
