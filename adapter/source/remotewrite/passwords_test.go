package remotewrite

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// checking is a handler that checks passwords as the toolkit does, one after the other, and counts how often.
type checking struct {
	mutex  chan struct{}
	checks int
}

func (c *checking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mutex <- struct{}{}
	c.checks++
	time.Sleep(60 * time.Millisecond)
	<-c.mutex
	if _, password, _ := r.BasicAuth(); password != "secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	admitted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
}

// Wrong passwords, each another one, cost little and keep out no other sender, whether it has been
// let in before or not.
func TestWrongPasswordsKeepOutNoOtherSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		c := &checking{mutex: make(chan struct{}, 1)}
		h := newPasswords(time.Now).guard(c)
		try := func(from, password string) int {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", http.NoBody)
			r.RemoteAddr = from + ":1"
			r.SetBasicAuth("agent", password)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		const hostile, span = 10, 20 * time.Second
		for i := range hostile {
			for n := range 6 {
				all.Go(func() {
					for k := 0; ctx.Err() == nil; k++ {
						try(fmt.Sprint("10.0.0.", i), fmt.Sprint(n, k))
						time.Sleep(100 * time.Millisecond)
					}
				})
			}
		}
		time.Sleep(time.Second)
		began := time.Now()
		assert.Equal(t, http.StatusOK, try("10.0.1.1", "secret"))
		assert.LessOrEqual(t, time.Since(began), (hostile+2)*checkEvery)
		for time.Since(began) < span {
			again := time.Now()
			assert.Equal(t, http.StatusOK, try("10.0.1.1", "secret"))
			assert.LessOrEqual(t, time.Since(again), 2*60*time.Millisecond)
			time.Sleep(time.Second)
		}
		cancel()
		all.Wait()
		assert.LessOrEqual(t, c.checks, int(span/checkEvery)+2*int(span/time.Second)+10)
	})
}

func TestPasswordsThatWereRight(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPasswords(func() time.Time { return now })
	digest := func(i int) (d [32]byte) { d[0], d[1] = byte(i), byte(i>>8); return d }
	for i := range 10 * maxAccepted {
		p.accept(digest(i))
		assert.LessOrEqual(t, len(p.accepted), maxAccepted)
	}
	assert.True(t, p.isAccepted(digest(10*maxAccepted-1)))
	now = now.Add(acceptedFor)
	assert.False(t, p.isAccepted(digest(10*maxAccepted-1)))
}
