package sourcetest

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// HeapInUse returns how many bytes of the heap are in use once garbage has been collected, pools included.
func HeapInUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// PeakOf returns how many bytes the heap took at most while f ran, garbage that had not been collected included.
func PeakOf(f func()) (bytes int64) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			metrics.Read(sample)
			bytes = max(bytes, int64(sample[0].Value.Uint64()))
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	}()
	f()
	close(done)
	<-ended
	return bytes
}
