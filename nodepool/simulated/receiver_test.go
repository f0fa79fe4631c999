package simulated

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// A client's rate limiter fails a request near its deadline with an error of its own, which is no failure of the cloud.
func TestReceiveIgnoresErrorsAtItsDeadline(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration // since the start, when calls begin to fail
		fails bool
	}{
		"at the end":      {receiveFor, false},
		"while receiving": {receiveFor / 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				client := kubernetesfake.NewClientset()
				client.PrependReactor("list", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
					if time.Since(start) < row.after {
						return false, nil, nil
					}
					return true, nil, errors.New(
						"client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline",
					)
				})
				cloud := New(Options{Client: client, Pool: "workers", Now: time.Now})
				got, err := Receiver{Cloud: cloud}.Receive(t.Context())
				assert.Empty(t, got)
				assert.Equal(t, row.fails, err != nil, "%v", err)
				assert.Equal(t, row.after, time.Since(start))
			})
		})
	}
}
