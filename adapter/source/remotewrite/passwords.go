package remotewrite

import (
	"context"
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/foresail/foresail/internal/share"
)

const (
	// checkEvery is the minimum time between two checks of passwords: bcrypt takes about 60 ms of a core for each,
	// by design.
	checkEvery = 200 * time.Millisecond
	// checksQueued is the number of requests of one sender that may wait for a check, for checkWait each.
	checksQueued, checkWait = 4, 10 * time.Second
	// acceptedFor is the time for which a password that was right is not checked in turn, and maxAccepted the
	// maximum number of such passwords.
	acceptedFor, maxAccepted = 10 * time.Minute, 256
)

// passwords limits how often passwords are checked. Senders, by their addresses, take turns, so that wrong
// passwords of one keep out no other and cost a third of a core at most. A cache of wrong ones would not: each
// may be another. Passwords that were right a short time ago do not wait.
type passwords struct {
	now    func() time.Time
	checks *share.Pool // one slot

	mu       sync.Mutex
	accepted map[[sha256.Size]byte]time.Time // by the digest of the header
}

func newPasswords(now func() time.Time) *passwords {
	return &passwords{now: now, checks: share.NewPool(1, checksQueued), accepted: map[[sha256.Size]byte]time.Time{}}
}

// guard limits how often a handler checks passwords. The handler calls admitted for each request that it lets in.
func (p *passwords) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, ok := r.BasicAuth(); !ok {
			next.ServeHTTP(w, r)
			return
		}
		digest := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		end := func() {}
		if !p.isAccepted(digest) {
			var ok bool
			if end, ok = p.awaitTurn(r); !ok {
				w.Header().Set("Retry-After", retryAfter)
				http.Error(w, "too many passwords are being checked", http.StatusServiceUnavailable)
				return
			}
		}
		defer end()
		right := false
		let := func() { right = true; p.accept(digest); end() }
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), admittedKey{}, let)))
		if !right {
			p.drop(digest)
		}
	})
}

// awaitTurn waits for the turn of a request to have its password checked, until end is called.
func (p *passwords) awaitTurn(r *http.Request) (end func(), ok bool) {
	ctx, cancel := context.WithTimeout(r.Context(), checkWait)
	defer cancel()
	turn := p.checks.Lease(senderOf(r), nil)
	if turn.Take(ctx, 1) != nil {
		turn.End()
		return nil, false
	}
	began := time.Now()
	return sync.OnceFunc(func() { time.AfterFunc(checkEvery-time.Since(began), turn.End) }), true
}

// isAccepted reports whether a password was right a short time ago.
func (p *passwords) isAccepted(digest [sha256.Size]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.accepted[digest]
	return ok && p.now().Sub(at) < acceptedFor
}

// drop removes a password that is no longer right.
func (p *passwords) drop(digest [sha256.Size]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.accepted, digest)
}

// accept remembers a password that was right.
func (p *passwords) accept(digest [sha256.Size]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.accepted) >= maxAccepted {
		clear(p.accepted) // an operator has fewer users than that
	}
	p.accepted[digest] = p.now()
}

// admittedKey is the key of the function of a request's context to call once its password was right.
type admittedKey struct{}

// admitted reports requests that reach a handler to the guard.
func admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if let, ok := r.Context().Value(admittedKey{}).(func()); ok {
			let()
		}
		next.ServeHTTP(w, r)
	})
}

// guardedListener replaces the handler of a server before its first connection: the exporter toolkit checks
// passwords in a handler of its own, which it sets right before it accepts, and has no hook in front of it.
type guardedListener struct {
	net.Listener
	once   sync.Once
	server *http.Server
	guard  func(http.Handler) http.Handler
}

// Accept implements net.Listener.
func (l *guardedListener) Accept() (net.Conn, error) {
	l.once.Do(func() { l.server.Handler = l.guard(l.server.Handler) })
	return l.Listener.Accept()
}
