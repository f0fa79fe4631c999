package lab

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	progressLines  = 10               // how many lines report progress where there is no terminal
	progressPeriod = 10 * time.Second // how often a line reports it where the total is not known in advance
)

// runProgress reports how many runs are done: as a bar on a terminal, in lines elsewhere.
type runProgress struct {
	out         io.Writer
	bar         *progressbar.ProgressBar // nil = lines
	done, total int
	growing     bool // the total may still grow
	reported    time.Time
}

// newRunProgress reports a number of runs; 0 if it is not known yet, see expect.
func newRunProgress(out io.Writer, total int) *runProgress {
	p := &runProgress{out: out, total: total, growing: total == 0, reported: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(max(1, total),
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

// step counts one more run as done.
func (p *runProgress) step() {
	p.done++
	switch {
	case p.bar != nil:
		_ = p.bar.Add(1) // a bar that cannot be drawn is no reason to stop
	case p.growing:
		if now := time.Now(); now.Sub(p.reported) >= progressPeriod {
			p.reported = now
			_, _ = fmt.Fprintf(p.out, "%d of at least %d runs\n", p.done, p.total) // likewise
		}
	case p.done*progressLines/p.total > (p.done-1)*progressLines/p.total:
		_, _ = fmt.Fprintf(p.out, "%d of %d runs\n", p.done, p.total) // likewise
	}
}

// expect sets how many runs there are, as far as is known by now.
func (p *runProgress) expect(total int) {
	p.total = total
	if p.bar != nil && total+1 != p.bar.GetMax() {
		p.bar.ChangeMax(total + 1) // more may come, and a bar that was full is not drawn again
	}
}

// end removes the bar.
func (p *runProgress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
