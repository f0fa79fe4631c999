package docpages

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// set is figures that one command writes.
type set struct {
	command string   // $FORESAIL_TRACES is replaced; one of foresail or benchlive writes its files to a folder
	files   []string // that it writes, or one for its output
}

const (
	simulate  = "foresail simulate"
	backtest  = "foresail backtest --trace $FORESAIL_TRACES/"
	weeks     = " --advise=false --scalers keda,keda/same-behavior,keda/yesterday,keda/last-week,foresail-total,clairvoyant"
	bounded   = " --advise=false --scalers keda,keda/same-behavior,foresail-total,foresail-total/hpa-defaults,instant,clairvoyant"
	few       = backtest + "twitter_stream_1s_day1_202108.csv" + bounded
	benchlive = "go run ./test/bench/live"
	nodes     = "go test -vet=off -timeout 30m -tags long -run ^$ -bench ^BenchmarkRamp$ -benchtime 1x ./test/bench/karpenter"
	day       = " --scalers keda,keda/same-behavior,foresail-total,foresail-total/hpa-defaults,clairvoyant,hpa-cpu,paper"
)

var sets = map[string]set{
	"paper":     {simulate + " --all", []string{"intervals.csv"}},
	"others":    {simulate + " --profile sine,sawtooth,noise,bursts,drift,falling --scalers keda,keda/same-behavior,foresail-total,foresail-total/hpa-defaults,instant,clairvoyant", []string{"intervals.csv"}},
	"ablations": {simulate + " --scalers keda --ablations", []string{"ablations.csv"}},
	"azure":     {backtest + "azure_llm_conv_1s_2023.csv" + day, []string{"summary.csv", "frontier.csv"}},
	"twitter": {backtest + "twitter_stream_1s_day1_202108.csv" + day,
		[]string{"summary.csv", "frontier.csv", "timeline.svg"}},
	"twitter-week": {backtest + "twitter_stream_1s_days2to8_202108.csv" + weeks,
		[]string{"summary.csv", "frontier.csv"}},
	"few-nasa":   {backtest + "nasa_http_1min_199507.csv" + bounded, []string{"frontier.csv"}},
	"few-0.2":    {few + " --scale 0.01 --capacity 0.286", []string{"frontier.csv"}},
	"few-0.5":    {few + " --scale 0.025 --capacity 0.715", []string{"frontier.csv"}},
	"few-1":      {few + " --scale 0.05 --capacity 1.43", []string{"frontier.csv"}},
	"few-2":      {few + " --scale 0.1 --capacity 2.86", []string{"frontier.csv"}},
	"few-5":      {few + " --scale 0.25 --capacity 7.15", []string{"frontier.csv"}},
	"few-20":     {few + " --scale 1 --capacity 28.6", []string{"frontier.csv"}},
	"live":       {benchlive + " --scalers keda,foresail-total,hpa-cpu", []string{"summary.csv"}},
	"hourly":     {benchlive + " --profiles hourly --scalers keda,foresail-total", []string{"summary.csv"}},
	"nodes":      {nodes, []string{"bench.txt"}},
	"slow-nodes": {nodes + " -args -slow 4", []string{"bench.txt"}},
	"karpenter":  {"go test -vet=off -timeout 45m -tags long -run ^$ -bench ^BenchmarkLoads$ -benchtime 1x ./test/bench/karpenter", []string{"bench.txt"}},
	"nasa": {backtest + "nasa_http_1min_199507.csv --scale 500" + weeks,
		[]string{"summary.csv", "frontier.csv"}},
	"nab":  {backtest + "nab_asg_cpu_5min.csv --scale 10" + weeks, []string{"summary.csv", "frontier.csv"}},
	"size": {"go test -run ^$ -bench ^BenchmarkPods$/^pods=(500|5000)$|^BenchmarkRemoteWrite$/^metrics=1000$ -benchtime 1x -timeout 2h ./test/bench/scale", []string{"bench.txt"}},
}

// aheadTraces are the traces of which forecasts are compared for starts of so long, each in a set of its own.
var (
	aheadTraces = []struct{ title, set, options string }{
		{"Azure LLM", "azure", "azure_llm_conv_1s_2023.csv"},
		{"Twitter stream, day 1", "twitter", "twitter_stream_1s_day1_202108.csv"},
		{"Twitter stream, days 2 to 8", "twitter-week", "twitter_stream_1s_days2to8_202108.csv"},
		{"NASA, 100 times as much", "nasa", "nasa_http_1min_199507.csv --scale 100"},
		{"NAB", "nab", "nab_asg_cpu_5min.csv --scale 10"},
	}
	aheadStarts = []string{"25s", "3m", "8m"}
)

func aheadSet(trace, start string) string { return "ahead-" + trace + "-" + start }

func init() {
	for _, trace := range aheadTraces {
		for _, start := range aheadStarts {
			command := backtest + trace.options + " --startup " + start + " --seeds 1 --advise=false --frontier=false --scalers keda,foresail-total"
			sets[aheadSet(trace.set, start)] = set{command, []string{"forecast.csv", "summary.csv"}}
		}
	}
}

// source says where figures come from.
type source struct {
	Command string `json:"command"`
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
}

// Measure runs the commands of sets of figures in the root of the repository, and keeps their files below
// docs/figures with the machine and the commit that they all began with. FORESAIL_TRACES is the folder of
// recorded traces.
func Measure(root string, names ...string) error {
	traces := os.Getenv("FORESAIL_TRACES")
	for _, name := range names {
		s, ok := sets[name]
		if !ok {
			return fmt.Errorf("%s: there are no such figures: want one of %s", name,
				strings.Join(slices.Sorted(maps.Keys(sets)), ", "))
		}
		if strings.Contains(s.command, "$FORESAIL_TRACES") && traces == "" {
			return fmt.Errorf("%s: FORESAIL_TRACES: must be the folder of the traces", name)
		}
	}
	commit, err := measured(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := sets[name].measure(root, name, traces, commit); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// measure runs the command of a set, and keeps its files with their source.
func (s set) measure(root, name, traces, commit string) error {
	dir := filepath.Join(root, "docs", "figures", name)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a folder of the repository
		return err
	}
	if err := s.run(root, dir, traces); err != nil {
		return err
	}
	text, err := json.MarshalIndent(source{s.command, commit, machine()}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "source.json"), append(text, '\n'), 0o644) //nolint:gosec // a file of the repository
}

// run runs the command of a set and keeps its files in a folder.
func (s set) run(root, dir, traces string) error {
	words := strings.Fields(strings.ReplaceAll(s.command, "$FORESAIL_TRACES", traces))
	out, err := os.MkdirTemp("", "figures-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(out) }()
	var printed bytes.Buffer
	if words[0] == "foresail" {
		words = append([]string{"go", "run", "./cmd/foresail"}, words[1:]...)
	}
	if words[1] == "run" {
		words = append(words, "--out", out)
	}
	command := exec.Command(words[0], words[1:]...) //nolint:gosec // a command of this repository
	command.Dir, command.Stdout, command.Stderr = root, io.MultiWriter(os.Stdout, &printed), os.Stderr
	if err := command.Run(); err != nil {
		return err
	}
	for _, file := range s.files {
		text, err := os.ReadFile(filepath.Join(out, file))
		if errors.Is(err, fs.ErrNotExist) {
			text, err = printed.Bytes(), nil
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil { //nolint:gosec // a file of the repository
			return err
		}
	}
	return nil
}

// measured names the commit that is measured, and says if files differ from it, those apart that are kept here.
func measured(root string) (string, error) {
	commit, err := output(root, "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := output(root, "git", "status", "--porcelain", "--", ".", ":!docs/figures")
	if changed != "" {
		commit += "-dirty"
	}
	return commit, err
}

func output(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...) //nolint:gosec // git
	c.Dir = dir
	text, err := c.Output()
	return strings.TrimSpace(string(text)), err
}

var model = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)

// machine describes the machine that figures are measured on.
func machine() string {
	cpu := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := model.FindSubmatch(text); m != nil {
			cpu = strings.TrimSpace(string(m[1]))
		}
	}
	return fmt.Sprintf("%d cores of %s", runtime.NumCPU(), cpu)
}

// rows are the lines of a CSV file, by the names of its columns.
type rows []map[string]string

func read(figures, name, file string) (rows, error) {
	f, err := os.Open(filepath.Join(figures, name, file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	var out rows
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, column := range all[0] {
			row[column] = line[i]
		}
		out = append(out, row)
	}
	return out, nil
}

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// readBenchmarks reads the output of benchmarks: a row for each, with its units as columns.
func readBenchmarks(figures, name, file string) (rows, error) {
	text, err := os.ReadFile(filepath.Join(figures, name, file))
	if err != nil {
		return nil, err
	}
	var out rows
	for _, line := range benchmarkLine.FindAllStringSubmatch(string(text), -1) {
		row := map[string]string{"benchmark": line[1]}
		for pair := range slices.Chunk(strings.Fields(line[2]), 2) {
			row[pair[len(pair)-1]] = pair[0]
		}
		out = append(out, row)
	}
	return out, nil
}

// find returns the first row in which columns have values, given in pairs; nil if there is none.
func (r rows) find(pairs ...string) map[string]string {
	i := slices.IndexFunc(r, func(row map[string]string) bool {
		for p := range slices.Chunk(pairs, 2) {
			if row[p[0]] != p[1] {
				return false
			}
		}
		return true
	})
	if i < 0 {
		return nil
	}
	return r[i]
}

// caption names the source of sets of figures, in one sentence for each commit and machine: the command of a
// set, or the one that measures several.
func caption(figures string, names ...string) (string, error) {
	var order []string
	from := map[string][]string{} // sets
	commands := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(figures, name, "source.json"))
		if err != nil {
			return "", err
		}
		var s source
		if err := json.Unmarshal(text, &s); err != nil {
			return "", fmt.Errorf("%s: source.json: %w", name, err)
		}
		at := fmt.Sprintf("at %s on %s", s.Commit, s.Machine)
		if from[at] == nil {
			order = append(order, at)
		}
		from[at], commands[at] = append(from[at], name), s.Command
	}
	var text strings.Builder
	for _, at := range order {
		if len(from[at]) > 1 {
			commands[at] = fmt.Sprintf("make figures FIGURES=%q", strings.Join(from[at], " "))
		}
		text.WriteString(Wrap(fmt.Sprintf("Measured %s by `%s`.", at, commands[at]), ""))
	}
	return text.String(), nil
}
