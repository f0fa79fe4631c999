package pods

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Limits for parsing a page.
const (
	maxLine  = 32 << 10 // bytes of a line that is looked at
	maxNames = 16 << 10 // bytes of metric names remembered for messages
)

// desired is the metrics that the readers of an endpoint select.
type desired struct {
	metrics  map[string]struct{}
	declared map[string]struct{} // the names whose TYPE matters to them: their own, and of the families they may belong to
}

func newDesired(metrics ...string) desired {
	w := desired{metrics: map[string]struct{}{}, declared: map[string]struct{}{}}
	for _, name := range metrics {
		w.metrics[name] = struct{}{}
		w.declared[name] = struct{}{}
		for _, s := range suffixes {
			if base, ok := strings.CutSuffix(name, s.suffix); ok {
				w.declared[base] = struct{}{}
			}
		}
	}
	return w
}

// page holds the desired metrics of one scrape. Lines of other metrics are skipped unparsed, which saves most of the
// work and keeps one bad line from hiding the rest.
//
// expfmt parses the lines as untyped: it knows neither the types nor the timestamps of OpenMetrics. It gets only lines
// that begin with the name of a desired metric.
type page struct {
	desired     desired
	openMetrics bool

	lines map[string]*bytes.Buffer // of each desired metric that is there, in the Prometheus text format
	spare []*bytes.Buffer          // for lines
	bad   map[string]error         // why the lines of a metric cannot be read
	types map[string]string        // as declared
	names []byte                   // of all metrics, each with a newline
	count int                      // how many
	last  []byte                   // the metric of the line before
	ended bool                     // the end mark of OpenMetrics has been seen

	reader *bufio.Reader
	parser expfmt.TextParser
}

func newPage() *page {
	return &page{
		lines: map[string]*bytes.Buffer{}, bad: map[string]error{}, types: map[string]string{},
		reader: bufio.NewReaderSize(nil, maxLine), parser: expfmt.NewTextParser(model.UTF8Validation),
	}
}

// read reads a page.
func (p *page) read(body io.Reader, w desired, openMetrics bool) error {
	p.reset(body, w, openMetrics)
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
	if openMetrics && !p.ended {
		return errors.New("the answer is cut short: it lacks the # EOF of OpenMetrics")
	}
	_, err := io.Copy(io.Discard, p.reader) // a connection is used again only if its answer has been read to the end
	return err
}

func (p *page) reset(body io.Reader, w desired, openMetrics bool) {
	p.desired, p.openMetrics = w, openMetrics
	for _, b := range p.lines {
		if b.Cap() <= maxLine {
			b.Reset()
			p.spare = append(p.spare, b)
		}
	}
	clear(p.lines)
	clear(p.bad)
	clear(p.types)
	p.names, p.count, p.last, p.ended = p.names[:0], 0, p.last[:0], false
	p.reader.Reset(body)
}

// longLine skips the rest of a line that does not fit into the buffer, and records an error if its metric is desired.
func (p *page) longLine(beginning []byte) error {
	name, _ := splitName(bytes.TrimLeft(beginning, " \t"))
	if !bytes.HasPrefix(name, []byte("#")) {
		p.note(name)
	}
	if p.isDesired(name) {
		p.bad[string(name)] = fmt.Errorf("a line of more than %d bytes", maxLine)
	}
	for {
		if _, err := p.reader.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func (p *page) isDesired(name []byte) bool {
	_, ok := p.desired.metrics[string(name)]
	return ok
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
	p.note(name)
	if !p.isDesired(name) {
		return
	}
	buffer := p.buffer(name)
	if !p.openMetrics {
		buffer.Write(line)
		return
	}
	buffer.Write(name)
	if err := appendOpenMetrics(buffer, rest); err != nil {
		p.bad[string(name)] = err
	}
}

// buffer returns the buffer for the lines of a metric.
func (p *page) buffer(name []byte) *bytes.Buffer {
	b := p.lines[string(name)]
	if b != nil {
		return b
	}
	if last := len(p.spare) - 1; last >= 0 {
		b, p.spare = p.spare[last], p.spare[:last]
	} else {
		b = &bytes.Buffer{}
	}
	p.lines[string(name)] = b
	return b
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

// note keeps the name of a metric for messages.
func (p *page) note(name []byte) {
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
		if _, ok := p.desired.declared[string(name)]; ok {
			declared, _ := nextField(rest)
			p.types[string(name)] = strings.ToLower(string(declared))
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

// appendOpenMetrics writes what follows the metric name in a line of OpenMetrics in the Prometheus text format: without
// exemplar, and with the time in milliseconds.
func appendOpenMetrics(out *bytes.Buffer, rest []byte) error {
	end := labelsEnd(rest)
	out.Write(rest[:end])
	value, rest := nextField(rest[end:])
	out.WriteByte(' ')
	out.Write(value)
	if timestamp, _ := nextField(rest); len(timestamp) > 0 && timestamp[0] != '#' {
		seconds, err := strconv.ParseFloat(string(timestamp), 64)
		if err != nil || math.IsNaN(seconds) || math.Abs(seconds) > maxSeconds {
			return fmt.Errorf("timestamp: %.40q: must be a time in seconds", timestamp)
		}
		out.WriteByte(' ')
		out.WriteString(strconv.FormatInt(int64(math.Round(seconds*1000)), 10))
	}
	out.WriteByte('\n')
	return nil
}

// maxSeconds is the latest time that is accepted, about the year 33,000; negative, it is the earliest.
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

// series returns the series of a desired metric, none if the page lacks it.
func (p *page) series(metric string) ([]*dto.Metric, error) {
	series, err := p.parse(metric)
	if syntax, ok := errors.AsType[expfmt.ParseError](err); ok {
		err = errors.New(syntax.Msg) // its line counts only lines of this metric
	}
	if err != nil {
		return nil, fmt.Errorf("metric %q cannot be read: %w", metric, err)
	}
	return series, nil
}

func (p *page) parse(metric string) ([]*dto.Metric, error) {
	if err := p.bad[metric]; err != nil {
		return nil, err
	}
	lines := p.lines[metric]
	if lines == nil {
		return nil, nil
	}
	families, err := p.parser.TextToMetricFamilies(bytes.NewReader(lines.Bytes()))
	return families[metric].GetMetric(), err
}
