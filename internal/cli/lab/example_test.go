package lab

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/cli"
)

const (
	exampleSpec   = "../../../docs/examples/replay/spec.yaml"
	exampleEvents = "../../../docs/examples/replay/events.jsonl"
)

var update = flag.Bool("update", false, "write the example's events anew")

// exampleSteps are the target counts of the example, in s, each what the run at that time desired
// and followed by its new pods 20 s later.
var exampleSteps = []struct{ at, count int64 }{{0, 4}, {45, 5}, {60, 6}, {75, 7}, {90, 8}, {105, 9}, {120, 10},
	{150, 11}}

// exampleRamp is a fleet of four to ten pods under a load that rises from 1.6 to 6.3 between 30 s
// and 150 s. Each pod is read once a second, and one of them answers nothing for eight seconds, to
// tell it all at once.
func exampleRamp() string {
	random := rand.New(rand.NewPCG(2024, 1))
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	type pod struct {
		name         string
		start, phase int64 // ms
	}
	var pods []pod
	for i, step := range exampleSteps {
		line(`{"target":%d,"at":%d}`, step.count, step.at*1000+500)
		for int64(len(pods)) < step.count {
			p := pod{name: fmt.Sprintf("checkout-%c", 'a'+len(pods)), start: step.at*1000 + 20_000 + random.Int64N(900),
				phase: random.Int64N(1000)}
			if i == 0 {
				p.start = -300_000
			}
			line(`{"instance":%q,"start":%d}`, p.name, p.start)
			pods = append(pods, p)
		}
	}
	for second := range int64(180) {
		load := 1.6 + 4.7*min(1, max(0, float64(second-30)/120))
		ready := 0
		for _, p := range pods {
			if p.start <= second*1000 {
				ready++
			}
		}
		for _, p := range pods {
			at := second*1000 + p.phase
			if p.start > second*1000 {
				continue
			}
			received := at + 5 + random.Int64N(40)
			if p.name == "checkout-b" && second >= 80 && second < 88 {
				received = 88_050
			}
			line(`{"instance":%q,"t":%d,"v":%.4f,"received":%d}`, p.name, at,
				load/float64(ready)*(1+0.03*random.NormFloat64()), received)
		}
	}
	for now := 15_000; now <= 180_000; now += 15_000 {
		line(`{"run":%d}`, now)
	}
	return b.String()
}

func TestTheExampleIsARampThatIsFollowed(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile(exampleEvents, []byte(exampleRamp()), 0o644))
	}
	recorded, err := os.ReadFile(exampleEvents)
	require.NoError(t, err)
	require.Equal(t, exampleRamp(), string(recorded), "run go test ./internal/cli/lab -update")

	code, out, stderr := foresail(t, "", "replay", "--filename", exampleSpec, "--input", exampleEvents)
	require.Equal(t, cli.ExitDone, code, stderr)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 12)
	var desired []int
	for _, line := range lines {
		var r struct {
			Error   string
			Desired int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Empty(t, r.Error)
		desired = append(desired, r.Desired)
	}
	// No fewer pods while the load rises and pods start; at 180 s all have started, and the load is
	// 6.3, at 0.7 a pod.
	assert.Equal(t, []int{4, 4, 5, 6, 7, 8, 9, 10, 10, 11, 11, 10}, desired)
}
