package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits of one run, so that none gets out of hand.
const (
	MaxRequests = 2_000_000
	MaxDuration = time.Hour
)

// Config is what to send and where. Profile and Endpoints must be set.
type Config struct {
	Profile   Profile
	Endpoints Endpoints
	Path      string // of every request; empty: "/"

	Poisson bool   // arrivals at random times instead of evenly spaced ones
	Seed    uint64 // of the random times

	// MaxInFlight bounds the requests under way, as the virtual users of k6 do; an arrival beyond
	// it is not sent but counted as dropped. 0: 2000.
	MaxInFlight int
	// Timeout is how long a request may take, from when it is sent. 0: 10 s.
	Timeout time.Duration
	// SlowStart is how long an endpoint takes from its first appearance to a full share of
	// requests, in a straight line from a tenth, as behind a proxy with slow start. 0: at once.
	SlowStart time.Duration
	// Recent is the span of Stats.Recent. 0: 10 s.
	Recent time.Duration
}

func (c *Config) complete() error {
	if err := c.Profile.Validate(); err != nil {
		return err
	}
	setDefault(&c.Path, "/")
	setDefault(&c.MaxInFlight, 2000)
	setDefault(&c.Timeout, 10*time.Second)
	setDefault(&c.Recent, 10*time.Second)
	switch {
	case c.Endpoints == nil:
		return errors.New("endpoints: must be given")
	case !strings.HasPrefix(c.Path, "/"):
		return fmt.Errorf("path %q: must begin with /", c.Path)
	case c.MaxInFlight < 0:
		return fmt.Errorf("requests in flight %d: must be above 0", c.MaxInFlight)
	case c.Timeout < 0:
		return fmt.Errorf("timeout %v: must be above 0", c.Timeout)
	case c.SlowStart < 0:
		return fmt.Errorf("slow start %v: must be 0 or above", c.SlowStart)
	case c.Recent < 0:
		return fmt.Errorf("recent span %v: must be above 0", c.Recent)
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Generator sends one run of requests. Its methods are safe for concurrent use.
type Generator struct {
	config   Config
	client   *http.Client
	balancer Balancer // of the goroutine in Run alone
	recorder recorder
	started  sync.Once
}

// New returns a generator that has sent nothing yet.
func New(config Config) (*Generator, error) {
	if err := config.complete(); err != nil {
		return nil, fmt.Errorf("loadgen: %w", err)
	}
	return &Generator{
		config:   config,
		client:   newClient(),
		balancer: Balancer{slowStart: config.SlowStart},
		recorder: recorder{failures: map[string]int{}},
	}, nil
}

// newClient keeps connections alive, follows no redirect, uses no proxy, and connects to loopback
// addresses only.
func newClient() *http.Client {
	dialer := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { return checkLoopback(address) }}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			MaxIdleConnsPerHost: 256,
			IdleConnTimeout:     30 * time.Second,
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Run sends the profile's requests and returns once the last has been answered or has timed out. It
// ends early with an error when ctx does, and when an endpoint is not a loopback address; the
// requests under way are then canceled. The report is that of what was sent. Run may be called
// once.
func (g *Generator) Run(ctx context.Context) (Report, error) {
	first := false
	g.started.Do(func() { first = true })
	if !first {
		return Report{}, errors.New("loadgen: a generator runs once")
	}
	defer g.client.CloseIdleConnections()
	sending, cancel := context.WithCancel(ctx)
	defer cancel()

	g.recorder.begin(time.Now())
	var sent sync.WaitGroup
	err := g.send(sending, &sent)
	if err != nil {
		cancel()
	}
	sent.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	return g.recorder.report(g.config.Profile), err
}

// Stats returns how the run stands. It sorts what has been measured, so a second or so between
// calls is fair: 20 ms for a hundred thousand requests.
func (g *Generator) Stats() Stats {
	stats := g.recorder.stats(g.config.Recent)
	stats.Rate = g.config.Profile.Rate(stats.Elapsed)
	stats.Endpoints = len(g.config.Endpoints.Endpoints())
	return stats
}

// send starts every request when it is due. It never waits for an answer.
func (g *Generator) send(ctx context.Context, sent *sync.WaitGroup) error {
	due := time.NewTimer(0)
	defer due.Stop()
	for at := range g.config.Profile.arrivals(g.config.Poisson, g.config.Seed) {
		due.Reset(at - g.recorder.elapsed())
		select {
		case <-ctx.Done():
			return nil
		case <-due.C:
		}
		if g.recorder.scheduled() >= MaxRequests {
			return fmt.Errorf("loadgen: stopped at the limit of %d requests", MaxRequests)
		}
		if err := g.arrive(ctx, at, sent); err != nil {
			return err
		}
	}
	return nil
}

// arrive sends the request due at a time since the start, or notes why it cannot be sent.
func (g *Generator) arrive(ctx context.Context, at time.Duration, sent *sync.WaitGroup) error {
	address := ""
	if addresses := g.config.Endpoints.Endpoints(); len(addresses) > 0 {
		var err error
		if address, err = g.balancer.Pick(at, addresses); err != nil {
			return fmt.Errorf("loadgen: %w", err)
		}
	}
	if !g.recorder.admit(at, g.config.MaxInFlight) {
		return nil
	}
	if address == "" {
		g.recorder.end(at, failed, "no endpoint")
		return nil
	}
	sent.Go(func() {
		outcome, reason := g.request(ctx, "http://"+address+g.config.Path)
		g.recorder.end(at, outcome, reason)
	})
	return nil
}

// request sends one request and returns how it ended, and why it failed.
func (g *Generator) request(ctx context.Context, url string) (outcome, string) {
	limited, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	err := get(limited, g.client, url)
	switch {
	case err == nil:
		return ok, ""
	case ctx.Err() != nil:
		return canceled, ""
	case limited.Err() != nil:
		return timedOut, ""
	}
	return failed, cause(err).Error()
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // what matters has been read by then
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return errors.New(response.Status)
	}
	return nil
}

// cause returns the innermost error, which names no address, so that like failures count together.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
