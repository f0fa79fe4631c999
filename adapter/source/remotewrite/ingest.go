package remotewrite

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
)

// ingester takes the samples of requests, whichever the protocol. It is safe for concurrent use.
type ingester struct {
	now       func() time.Time
	ready     func() error // nil: always
	access    *access
	bodies    *bodies
	telemetry *telemetry
	batches   sync.Pool
}

func newIngester(o *Options, x *index[*member]) *ingester {
	t := newTelemetry(o.Registerer)
	g := &ingester{now: o.Now, ready: o.Ready, access: newAccess(o.senders(), o.Now),
		bodies: newBodies(o, t), telemetry: t}
	limits := o.limits()
	g.batches.New = func() any { return newBatch(x, limits) }
	return g
}

// outcome is the result of a request that was decoded.
type outcome struct {
	seen     decode.Content
	rejected int    // samples
	reasons  string // "" if nothing was rejected
}

// decoding decodes the body of a request into a batch.
type decoding func(*body, *batch) error

// take reads the body of a request, decodes it, and passes its samples to the subscriptions. Its errors are
// *rejection unless they come from decoding.
func (g *ingester) take(r *http.Request, decompress decompression, decode decoding) (outcome, error) {
	if err := g.checkReady(); err != nil {
		return outcome{}, err
	}
	body, err := g.bodies.read(r, decompress)
	if err != nil {
		return outcome{}, err
	}
	defer body.free()
	b := g.batches.Get().(*batch)
	defer g.recycle(b)
	b.begin(g.now())
	if err := decode(body, b); err != nil {
		return outcome{}, rejectionOf(err)
	}
	b.apply()
	seen := b.decoder.Seen()
	g.telemetry.taken(&b.tally, &seen)
	return outcome{seen, b.rejections(), b.tally.reasons()}, nil
}

// checkReady asks senders to try again while pods are not known.
func (g *ingester) checkReady() error {
	if g.ready == nil {
		return nil
	}
	if err := g.ready(); err != nil {
		return &rejection{http.StatusServiceUnavailable, fmt.Sprintf("samples cannot be assigned to pods yet: %v", err)}
	}
	return nil
}

// recycle keeps a batch for the next request.
func (g *ingester) recycle(b *batch) {
	if b.large() {
		return
	}
	b.reset()
	g.batches.Put(b)
}
