package replay

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// recorded writes what 20 instances tell in the given number of seconds, with a run every 5 s.
func recorded(seconds int64) string {
	var b strings.Builder
	for i := range int64(20) {
		fmt.Fprintf(&b, `{"instance":"checkout-7d9f8b6c5-%05d","start":%d}`+"\n", i, i*seconds/40*1000)
	}
	for s := range seconds {
		for i := range int64(20) {
			at := s*1000 + i*37
			if s < i*seconds/40 {
				continue
			}
			v := 0.5 + 0.3*math.Sin(float64(s)/300+float64(i))
			fmt.Fprintf(&b, `{"instance":"checkout-7d9f8b6c5-%05d","t":%d,"v":%v,"received":%d}`+"\n", i, at, v, at+25)
		}
		if s%5 == 0 {
			fmt.Fprintf(&b, `{"run":%d}`+"\n", s*1000)
		}
	}
	return b.String()
}

func BenchmarkRead(b *testing.B) {
	input := recorded(600)
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(strings.NewReader(input)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*strings.Count(input, "\n"))/b.Elapsed().Seconds(), "lines/s")
}

func BenchmarkReplay(b *testing.B) {
	input := recorded(3600)
	rec, err := Read(strings.NewReader(input))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		results, err := rec.Replay(Options{Params: testParams()})
		if err != nil {
			b.Fatal(err)
		}
		w, err := NewWriter(io.Discard, JSON)
		if err != nil {
			b.Fatal(err)
		}
		for r := range results {
			if err := w.Write(r); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(rec.runs))/b.Elapsed().Seconds(), "runs/s")
}
