package foresail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/ports"
)

// stopTimeout is how long a process has to end by itself, on a crowded machine.
const stopTimeout = time.Minute

// Options of a Process.
type Options struct {
	Name   string // of the log, and in errors; "" stands for foresail
	Binary Binary
	Dir    string   // of the log
	Home   string   // the working directory, in which SDKs look for settings; "" stands for Dir
	Env    []string // further variables, as name=value
	// Flags of foresail run, but for the addresses of a Process. Those of the form test:NAME=VALUE
	// are no flags: they go into FORESAIL_TEST_OPTIONS, which has values that only tests change.
	Flags []string
}

// Process is foresail at addresses that stay the same when it is started again.
type Process struct {
	*controlplane.Process
	ProbeAddress string // host:port of /livez and /readyz
	Address      string // host:port of /metrics and explanations, for anyone on this machine
	LogFile      string

	options Options

	mu      sync.Mutex
	stopped bool
	result  error // of Stop
}

// Start starts foresail. It does not wait for it to be ready. The process ends with this one at the latest.
func Start(o Options) (*Process, error) {
	o.Name, o.Home = cmp.Or(o.Name, "foresail"), cmp.Or(o.Home, o.Dir)
	p := &Process{LogFile: filepath.Join(o.Dir, o.Name+".log"), options: o}
	var err error
	for _, address := range []*string{&p.ProbeAddress, &p.Address} {
		if *address, err = ports.TakeAddress(); err != nil {
			return nil, err
		}
	}
	flags, testOptions := split(o.Flags)
	p.options.Flags = append([]string{"run", "--http-address", p.ProbeAddress, "--metrics-address", p.Address,
		"--allow-anonymous=metrics"}, flags...)
	p.options.Env = append(slices.Clone(o.Env), "FORESAIL_TEST_OPTIONS="+testOptions)
	if o.Binary.profiles != "" {
		p.options.Flags = append(p.options.Flags, "--profiling")
	}
	if err := p.Restart(); err != nil {
		return nil, err
	}
	return p, nil
}

// split separates flags from values that only tests change.
func split(all []string) (flags []string, testOptions string) {
	var options []string
	for _, flag := range all {
		if option, ok := strings.CutPrefix(flag, "test:"); ok {
			options = append(options, option)
		} else {
			flags = append(flags, flag)
		}
	}
	return flags, strings.Join(options, " ")
}

// Restart starts foresail again, once it is gone.
func (p *Process) Restart() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.options
	p.Process, err = controlplane.StartProcess(o.Name, o.Binary.path, p.LogFile, o.Home, o.Flags, o.Env...)
	p.stopped, p.result = false, nil
	return err
}

// Stop ends foresail as a kubelet would and returns when it is gone. It is an error if foresail has
// ended before, unless by Kill, or does not end in time with exit status 0.
func (p *Process) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return p.result
	}
	p.stopped = true
	select {
	case <-p.Ended():
		p.result = p.Failure()
	default:
		p.result = errors.Join(p.Process.Stop(stopTimeout), p.Result())
	}
	return p.result
}

// Kill ends foresail as a crash would and returns when it is gone.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if err := p.Signal(os.Kill); err != nil {
		return err
	}
	<-p.Ended()
	return nil
}

// WaitReady waits until /readyz answers with 200.
func (p *Process) WaitReady(ctx context.Context) error {
	return p.Wait(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		return p.Probe(ctx, "/readyz")
	})
}

// Wait checks, at an interval, until there is no error. It gives up when foresail ends or ctx does.
func (p *Process) Wait(ctx context.Context, interval time.Duration, check func(context.Context) error) error {
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Ended():
			return p.Failure()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %w; last lines of its log:\n%s", p.options.Name, context.Cause(ctx),
				err, p.LogTail())
		case <-time.After(interval):
		}
	}
}

// Probe reads a path of the probes. An answer with another status than 200 is an error.
func (p *Process) Probe(ctx context.Context, path string) error {
	body, err := open(ctx, "http://"+p.ProbeAddress+path)
	if err != nil {
		return err
	}
	return body.Close()
}

// Get reads a path beside /metrics. An answer with another status than 200 is an error.
func (p *Process) Get(ctx context.Context, path string) (string, error) {
	body, err := open(ctx, "http://"+p.Address+path)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(body)
	return string(content), err
}

// open returns the body of an answer with status 200.
func open(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		why, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return nil, fmt.Errorf("%s: %s: %s", url, response.Status, why)
	}
	return response.Body, nil
}
