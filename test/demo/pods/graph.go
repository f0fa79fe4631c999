package main

import (
	"math"
	"strings"
	"time"

	"github.com/foresail/foresail/test/env/stack"
)

// eighths are the blocks that fill a cell from the left, levels those that fill it from below.
var (
	eighths = []rune(" ▏▎▍▌▋▊▉█")
	levels  = []rune(" ▁▂▃▄▅▆▇█")
)

// bar draws a value as a bar of so many columns that stand for 0 to top, with a mark; what is
// beyond the mark is bad.
func bar(value, mark, top float64, columns int) line {
	full := int(math.Round(min(max(value/top, 0), 1) * float64(columns) * 8))
	at := min(int(mark/top*float64(columns)), columns-1)
	cells := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			b.WriteRune(eighths[min(max(full-8*i, 0), 8)])
		}
		return b.String()
	}
	below := good
	if value > mark {
		below = bad
	}
	return line{faint.Text("▕"), below.Text(cells(0, at)), strong.Text("┃"), bad.Text(cells(at+1, columns)),
		faint.Text("▏")}
}

// progress draws a share of so many columns.
func progress(share float64, columns int) line {
	done := int(math.Round(min(max(share, 0), 1) * float64(columns)))
	return line{accent.Text(strings.Repeat("━", done)), faint.Text(strings.Repeat("─", columns-done))}
}

// graph draws values from left to right as columns that are so many rows high and stand for 0 to
// top; NaN is empty. Those beyond the mark are bad.
func graph(values []float64, mark, top float64, rows int) []line {
	out := make([]line, rows)
	for r := range out {
		for _, v := range values {
			cell := good.Text(" ")
			if !math.IsNaN(v) {
				full := int(math.Round(min(max(v/top, 0), 1) * float64(rows) * 8))
				if v > 0 {
					full = max(full, 1)
				}
				cell.Text = string(levels[min(max(full-8*(rows-1-r), 0), 8)])
			}
			if v > mark {
				cell.Style = bad
			}
			out[r] = out[r].Join(cell)
		}
	}
	return out
}

// overTime spreads what moments say over so many columns that stand for a span: the most of those
// that fall into a column, or of the column before it if there are none, and NaN for what is still
// to come.
func overTime(moments []stack.Moment, span time.Duration, columns int, value func(stack.Moment) float64) []float64 {
	out := make([]float64, columns)
	for i := range out {
		out[i] = math.NaN()
	}
	last := -1
	for _, m := range moments {
		i := int(int64(m.At) * int64(columns) / int64(span))
		if i < 0 || i >= columns {
			continue
		}
		for j := last + 1; j < i && last >= 0; j++ {
			out[j] = out[last]
		}
		if v := value(m); math.IsNaN(out[i]) || v > out[i] {
			out[i] = v
		}
		last = i
	}
	return out
}
