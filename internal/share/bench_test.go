package share

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// BenchmarkPoolWithManyTenants asks for a slot, and gives up, while so many tenants wait for one.
func BenchmarkPoolWithManyTenants(b *testing.B) {
	for _, tenants := range []int{50, 500, 5000} {
		b.Run(fmt.Sprint("tenants=", tenants), func(b *testing.B) {
			const slots = 8
			p := NewPool(slots, 0)
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for i := range slots + tenants {
				all.Go(func() {
					l := p.Lease(fmt.Sprint(i), func() {})
					defer l.End()
					if l.Take(ctx, 1) == nil {
						<-ctx.Done()
					}
				})
			}
			for present := 0; present < slots+tenants; runtime.Gosched() {
				p.mu.Lock()
				present = len(p.tenants)
				p.mu.Unlock()
			}
			over, end := context.WithCancel(b.Context())
			end()
			for b.Loop() {
				l := p.Lease("last", func() {})
				_ = l.Take(over, 1)
				l.End()
			}
			cancel()
			all.Wait()
		})
	}
}
