package foresail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
)

// Families are the metrics of a page, by name.
type Families map[string]*dto.MetricFamily

// Metrics reads /metrics.
func (p *Process) Metrics(ctx context.Context) (Families, error) {
	return ReadMetrics(ctx, "http://"+p.Address+"/metrics")
}

// ReadMetrics reads the page of metrics at a URL.
func ReadMetrics(ctx context.Context, url string) (Families, error) {
	body, err := open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	return ParseMetrics(body)
}

// ParseMetrics reads a page of metrics. There are none of a page with an error.
func ParseMetrics(page io.Reader) (Families, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return nil, err
	}
	return families, nil
}

// Labels returns the labels of a series.
func Labels(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// Find returns the series of a name that have labels, given as name, value, name, value. The value
// "" fits series without the label too.
func (f Families) Find(name string, labels ...string) (out []*dto.Metric) {
	for _, m := range f[name].GetMetric() {
		has, fits := Labels(m), true
		for i := 0; i+1 < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			out = append(out, m)
		}
	}
	return out
}

// Sum adds up the series that Find returns: counters, gauges, and the counts of histograms.
func (f Families) Sum(name string, labels ...string) float64 {
	sum := 0.0
	for _, m := range f.Find(name, labels...) {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

// Gauge returns the first of the series that Find returns, and whether there is one.
func (f Families) Gauge(name string, labels ...string) (float64, bool) {
	for _, m := range f.Find(name, labels...) {
		return m.GetGauge().GetValue(), true
	}
	return 0, false
}

// Usage is what a process has taken.
type Usage struct {
	At             time.Time
	CPU            time.Duration // in user and kernel mode
	Resident, Peak uint64        // bytes
}

// Usage reads what the process has taken, on Linux.
func (p *Process) Usage() (Usage, error) { return UsageOf(p.PID()) }

// UsageOf reads what a process has taken, on Linux.
func UsageOf(pid int) (Usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, err
	}
	status, err := proc.NewStatus()
	return Usage{
		At: time.Now(), CPU: time.Duration(stat.CPUTime() * float64(time.Second)),
		Resident: status.VmRSS, Peak: status.VmHWM,
	}, err
}

// Cores returns how many cores were busy between two readings.
func (u Usage) Cores(before Usage) float64 {
	return (u.CPU - before.CPU).Seconds() / u.At.Sub(before.At).Seconds()
}

// SaveProfiles writes name.cpu.pprof, which covers a span from now on, and name.heap.pprof, if
// there is a folder for profiles.
func (p *Process) SaveProfiles(ctx context.Context, name string, span time.Duration) error {
	if p.options.Binary.profiles == "" {
		return nil
	}
	file := filepath.Join(p.options.Binary.profiles, filepath.FromSlash(name))
	return errors.Join(
		p.saveProfile(ctx, fmt.Sprintf("profile?seconds=%d", int(span.Seconds())), file+".cpu.pprof"),
		p.saveProfile(ctx, "heap?gc=1", file+".heap.pprof"),
	)
}

func (p *Process) saveProfile(ctx context.Context, path, file string) error {
	body, err := open(ctx, "http://"+p.Address+"/debug/pprof/"+path)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}
