package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressLines is how many lines tell of progress where there is no terminal to draw a bar on.
const progressLines = 10

// runProgress tells how many of a known number of runs are done: as a bar on a terminal, in lines elsewhere.
type runProgress struct {
	out         io.Writer
	bar         *progressbar.ProgressBar // nil = lines
	done, total int
}

func newRunProgress(out io.Writer, total int) *runProgress {
	p := &runProgress{out: out, total: total}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetDescription("runs"),
			progressbar.OptionShowCount(),
			progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetRenderBlankState(true),
		)
	}
	return p
}

// step notes that one more is done.
func (p *runProgress) step() {
	p.done++
	switch {
	case p.bar != nil:
		_ = p.bar.Add(1) // a bar that cannot be drawn is no reason to stop
	case p.done*progressLines/p.total > (p.done-1)*progressLines/p.total:
		_, _ = fmt.Fprintf(p.out, "%d of %d runs\n", p.done, p.total) // likewise
	}
}

// expect says how many there are, as far as is known by now.
func (p *runProgress) expect(total int) {
	p.total = total
	if p.bar != nil && total != p.bar.GetMax() {
		p.bar.ChangeMax(total)
	}
}

// end takes the bar away.
func (p *runProgress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
