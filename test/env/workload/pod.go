package workload

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// ErrQueueFull is why a pod refuses a request.
var ErrQueueFull = errors.New("queue is full")

// utilizationWindow is the span that Usage.Utilization looks back.
const utilizationWindow = time.Second

// Pod is one event loop and the endpoints in front of it. It is safe for concurrent use.
type Pod struct {
	name    string
	model   Model
	origin  time.Time
	servers *servers
	usage   func() Usage // that its metrics show

	mu        sync.Mutex // guards what follows
	queue     queue
	random    *rand.Rand
	departure *time.Timer // fires when the request in service ends
	received  uint64
	rejected  uint64
	abandoned uint64
}

// Usage is what a pod has done up to one moment.
type Usage struct {
	Utilization float64       // share of the second before that the event loop was busy, 0..1
	Busy        time.Duration // for how long it has been busy since it began
	Length      int           // requests waiting and in service
	Received    uint64        // requests, whatever became of them
	Served      uint64        // requests served to their end, those included whose client left during service
	Rejected    uint64        // requests refused because the queue was full
	Abandoned   uint64        // requests whose client left before service started; they took no service
}

// NewPod returns a pod that has served nothing yet. Its service times follow from seed and name,
// and from nothing else.
func NewPod(name string, model Model, seed uint64) (*Pod, error) {
	if err := model.Validate(); err != nil {
		return nil, err
	}
	hash := fnv.New64a()
	hash.Write([]byte(name))
	p := &Pod{
		name:   name,
		model:  model,
		origin: time.Now(),
		random: rand.New(rand.NewPCG(seed, hash.Sum64())),
	}
	p.departure = time.AfterFunc(time.Hour, p.tick)
	p.departure.Stop()
	p.usage = p.Usage
	p.servers = newServers(p)
	return p, nil
}

// Do takes one request through the queue and returns when it has been served. It returns
// ErrQueueFull at once if the queue is full, and ctx's error as soon as ctx ends: a request still
// waiting then uses no service, one in service is worked off all the same.
func (p *Pod) Do(ctx context.Context) error {
	j, err := p.arrive()
	if err != nil {
		return err
	}
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		p.leave(j)
		return ctx.Err()
	}
}

// Usage returns what the pod has done up to now.
func (p *Pod) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.queue.advance(now)
	recent := p.queue.busy.between(now-utilizationWindow, now)
	return Usage{
		Utilization: recent.Seconds() / utilizationWindow.Seconds(),
		Busy:        p.queue.busy.until(now),
		Length:      p.queue.length(),
		Received:    p.received,
		Served:      p.queue.served,
		Rejected:    p.rejected,
		Abandoned:   p.abandoned,
	}
}

func (p *Pod) arrive() (*job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.queue.advance(now)
	p.received++
	if p.queue.length() >= p.model.QueueLimit {
		p.rejected++
		return nil, ErrQueueFull
	}
	j := p.queue.arrive(now, p.model.draw(p.random))
	if p.queue.current == j {
		p.departure.Reset(j.service)
	}
	return j, nil
}

func (p *Pod) leave(j *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.abandon(p.now(), j) {
		p.abandoned++
	}
}

// tick ends what is finished and waits for the next end. Other calls may have moved the queue
// before it, which makes it early, never wrong.
func (p *Pod) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.queue.advance(now)
	if p.queue.current != nil {
		p.departure.Reset(p.queue.current.finish - now)
	}
}

// now is taken under the mutex, so that it never falls from one use to the next.
func (p *Pod) now() time.Duration { return time.Since(p.origin) }
