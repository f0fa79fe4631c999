package forward

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listOf is the document that lists metrics, in the order of the names.
func listOf(names ...string) adapter {
	body := `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"external.metrics.k8s.io/v1beta1","resources":[`
	for i, name := range names {
		if i > 0 {
			body += ","
		}
		body += `{"name":"` + name + `","singularName":"","namespaced":true,"kind":"ExternalMetricValueList","verbs":["get"]}`
	}
	return answering(http.StatusOK, body+"]}")
}

func TestListIsReadInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newNetwork(refusing)
		f, registry := forwarderTo(to)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		changes := 0
		go f.Run(ctx, func() { changes++ })
		synctest.Wait()
		assert.Empty(t, f.Metrics(), "down at the start")
		assert.Equal(t, 0, changes)
		assert.InDelta(t, 0, value(t, registry, "foresail_forward_available", ""), 0)

		next := func(a adapter) {
			to.set(a)
			time.Sleep(listEvery)
			synctest.Wait()
		}
		next(listOf("queue", "predicted_load", "externalmetrics", "queue", "other/status"))
		assert.Equal(t, []string{"queue", "externalmetrics"}, f.Metrics(),
			"each once, KEDA's placeholder included, without Foresail's")
		assert.Equal(t, 1, changes)
		assert.InDelta(t, 1, value(t, registry, "foresail_forward_shadowed_metrics", ""), 0)
		assert.InDelta(t, 1, value(t, registry, "foresail_forward_available", ""), 0)

		next(listOf("queue", "externalmetrics"))
		assert.Equal(t, 1, changes, "nothing has changed")
		assert.InDelta(t, 0, value(t, registry, "foresail_forward_shadowed_metrics", ""), 0)

		for _, useless := range []adapter{
			refusing, silent, answering(http.StatusForbidden, "{}"), answering(http.StatusOK, "no JSON"),
			answering(http.StatusOK, `{"groupVersion":"v1"}`),
		} {
			next(useless)
			time.Sleep(timeLimit)
			synctest.Wait()
			assert.Equal(t, []string{"queue", "externalmetrics"}, f.Metrics(), "the last good list")
		}
		next(listOf())
		assert.Empty(t, f.Metrics())
		assert.Equal(t, 2, changes)
	})
}

// Where no one reads, a list shows that the second adapter is back.
func TestListClosesTheBreakerForOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newNetwork(refusing)
		f, _ := forwarderTo(to)
		for range maxFailures {
			read(f, newRead(t.Context(), queue))
		}
		to.set(listOf("queue"))
		f.list(t.Context(), state{}, func() {})
		assert.False(t, f.breaker.available(), "too early")
		time.Sleep(openFor)
		f.list(t.Context(), state{}, func() {})
		assert.True(t, f.breaker.available())
		to.set(refusing)
		read(f, newRead(t.Context(), queue))
		assert.False(t, f.breaker.available())
	})
}

// Of each change of availability there is one report, whether reads or lists notice it.
func TestAvailabilityIsReportedOncePerChange(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBreaker(func() time.Time { return now })
	down := assert.AnError
	assert.Equal(t, change{}, b.gaveUpAnd(), "unknown is no change")
	assert.Equal(t, change{changed: true, cause: down}, b.listed(down), "the first report")
	assert.Equal(t, change{}, b.listed(down))
	assert.Equal(t, change{changed: true}, b.answered())
	assert.Equal(t, change{}, b.answered())
	assert.Equal(t, change{}, b.listed(nil))
	for range maxFailures - 1 {
		assert.Equal(t, change{}, b.failed(down, false, false))
	}
	assert.Equal(t, change{changed: true, cause: down}, b.failed(down, false, false))
	assert.Equal(t, change{}, b.listed(down))
	assert.Equal(t, change{changed: true}, b.answered())
}

// gaveUpAnd returns the change after a read that a client gave up.
func (b *breaker) gaveUpAnd() change {
	b.gaveUp(false)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changeLocked()
}

// A metric that is slow is not taken for an adapter that is down, as long as the adapter lists its metrics.
func TestSlowReadsOpenTheBreakerOnlyWithoutAList(t *testing.T) {
	slow := errors.New("no answer within 5s")
	b := newBreaker(time.Now)
	b.listed(nil)
	for range 3 * maxFailures {
		b.failed(slow, false, true)
	}
	_, cause := b.admit()
	require.NoError(t, cause)
	b.listed(errors.New("no route to host"))
	for range maxFailures {
		b.failed(slow, false, true)
	}
	_, cause = b.admit()
	require.ErrorIs(t, cause, slow)
}

func TestOneNamespaceLeavesRoomForOthers(t *testing.T) {
	x := inFlight{of: map[string]int{}}
	var leaving []func()
	for range maxOfNamespace {
		leave, busy := x.enter("shop")
		require.Empty(t, busy)
		leaving = append(leaving, leave)
	}
	_, busy := x.enter("shop")
	assert.Contains(t, busy, "25 reads of the namespace")
	leave, busy := x.enter("bank")
	require.Empty(t, busy)
	leave()
	for _, leave := range leaving {
		leave()
	}
	assert.Zero(t, x.all)
	assert.Empty(t, x.of)
}
