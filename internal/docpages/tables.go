package docpages

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// table renders a table of figures with its caption.
type table func(figures string) (string, error)

var tables = map[string]table{
	"paper":     paper,
	"others":    others,
	"traces":    traces,
	"frontier":  frontier,
	"foresight": foresight,
	"recurring": recurring,
	"few":       fewRequests,
	"ahead":     ahead,
	"ablations": ablations,
	"live":      inRealTime("live"),
	"hourly":    inRealTime("hourly"),
	"size":      size,
	"nodes":     nodeStarts,
	"karpenter": karpenterComparison,
}

// FigureTables renders every table of the figures in a folder, by the names of their sections.
func FigureTables(figures string) (map[string]string, error) {
	rendered := map[string]string{}
	for name, render := range tables {
		text, err := render(figures)
		if err != nil {
			return nil, fmt.Errorf("table of figures %s: %w", name, err)
		}
		rendered["figures-"+name] = text
	}
	return rendered, nil
}

// figure is a column of the files.
type figure struct {
	title, column string
	decimals      int
	factor        float64 // 0 = 1
}

var (
	success    = figure{"success, %", "success", 2, 100}
	p90        = figure{"p90, ms", "p90_ms", 0, 1}
	p99        = figure{"p99, ms", "p99_ms", 0, 1}
	above      = figure{"above threshold, min", "above_threshold_minutes", 2, 1}
	podSeconds = figure{"pod-seconds", "pod_seconds", 0, 1}
)

// number writes a value of a row for people, with commas between thousands; - if it is unknown.
func (f figure) number(row map[string]string, suffix string) string {
	v, err := strconv.ParseFloat(row[f.column+suffix], 64)
	if err != nil {
		return "-"
	}
	return grouped(v*cmp.Or(f.factor, 1), f.decimals)
}

func grouped(v float64, decimals int) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	if v < 0 && strings.Trim(text, "0.") != "" {
		return "−" + whole
	}
	return whole
}

// interval writes a mean and half its interval.
func (f figure) interval(row map[string]string) string {
	if half := f.number(row, "_half"); half != "-" {
		return f.number(row, "") + " ± " + half
	}
	return f.number(row, "")
}

// certain reports whether the difference from a reference excludes 0.
func (f figure) certain(row map[string]string) bool {
	more, err := strconv.ParseFloat(row[f.column+"_minus_reference"], 64)
	half, failed := strconv.ParseFloat(row[f.column+"_minus_reference_half"], 64)
	return err == nil && failed == nil && math.Abs(more) > half
}

// markdown writes a table and its caption.
func markdown(figures string, header []string, body [][]string, sets ...string) (string, error) {
	from, err := caption(figures, sets...)
	return Table(append([][]string{header}, body...)) + "\n" + from, err
}

// columns are figures of one profile.
type columns struct {
	profile string
	figures []figure
}

func titles(groups []columns) []string {
	var out []string
	for _, group := range groups {
		for _, f := range group.figures {
			out = append(out, group.profile+": "+f.title)
		}
	}
	return out
}

func paper(figures string) (string, error) {
	all, err := read(figures, "paper", "intervals.csv")
	if err != nil {
		return "", err
	}
	groups := []columns{{"ramp", []figure{success, p99, podSeconds}}, {"spike", []figure{success, p99, podSeconds}}}
	var body [][]string
	for _, name := range []string{
		"hpa-cpu", "keda", "keda/same-behavior", "paper", "foresail-total", "foresail-total/hpa-defaults",
		"foresail-replicas", "foresail-direct", "instant", "instant/hpa-defaults", "clairvoyant",
	} {
		cells := []string{"`" + name + "`"}
		for _, group := range groups {
			row := all.find("profile", group.profile, "scaler", name)
			for _, f := range group.figures {
				cells = append(cells, f.interval(row))
			}
		}
		body = append(body, cells)
	}
	return markdown(figures, append([]string{"scaler"}, titles(groups)...), body, "paper")
}

// others has a line for each load, and for each scaler success, time above the threshold and pod-seconds.
func others(figures string) (string, error) {
	all, err := read(figures, "others", "intervals.csv")
	if err != nil {
		return "", err
	}
	names := []string{"keda", "keda/same-behavior", "foresail-total", "foresail-total/hpa-defaults", "instant",
		"clairvoyant"}
	header := []string{"success, % / above threshold, min / pod-seconds"}
	for _, name := range names {
		header = append(header, quoted(name))
	}
	var body [][]string
	for _, profile := range []string{"sine", "sawtooth", "noise", "bursts", "drift", "falling"} {
		cells := []string{profile}
		for _, name := range names {
			row := all.find("profile", profile, "scaler", name)
			cells = append(cells, success.number(row, "")+" / "+above.number(row, "")+" / "+podSeconds.number(row, ""))
		}
		body = append(body, cells)
	}
	return markdown(figures, header, body, "others")
}

// recordedTrace is a trace that was recorded, and the name of the set of its figures.
type recordedTrace struct{ set, title string }

// recorded are the traces, by the names of their sets.
var recorded = []recordedTrace{
	{"azure", "Azure LLM"}, {"twitter", "Twitter stream"}, {"nasa", "NASA"}, {"nab", "NAB"},
}

// byTrace has a line for each trace, with a cell for each column of a file of its figures.
func byTrace[C any](
	figures, file, corner string, traces []recordedTrace, columns []C, title func(C) string, cell func(rows, C) string,
) (string, error) {
	header := []string{corner}
	for _, c := range columns {
		header = append(header, title(c))
	}
	var body [][]string
	var sets []string
	for _, trace := range traces {
		all, err := read(figures, trace.set, file)
		if err != nil {
			return "", err
		}
		cells := []string{trace.title}
		for _, c := range columns {
			cells = append(cells, cell(all, c))
		}
		body, sets = append(body, cells), append(sets, trace.set)
	}
	return markdown(figures, header, body, sets...)
}

func quoted(name string) string { return "`" + name + "`" }

// lateAndPods writes the two measures that autoscalers are compared by.
func lateAndPods(row map[string]string) string {
	minutes, hours := figure{column: "above_threshold_minutes", decimals: 1}, figure{column: "pod_hours", decimals: 1}
	return minutes.number(row, "") + " / " + hours.number(row, "")
}

func traces(figures string) (string, error) {
	const mase = "MASE"
	columns := []string{"keda", "keda/same-behavior", "hpa-cpu", "paper", ours, "clairvoyant", mase}
	title := func(name string) string {
		if name == mase {
			return name
		}
		return quoted(name)
	}
	return byTrace(figures, "summary.csv", "above threshold, min / pod-hours", recorded, columns, title,
		func(all rows, name string) string {
			if name == mase {
				return figure{column: "mase", decimals: 2}.number(all.find("scaler", ours), "")
			}
			if row := all.find("scaler", name); row != nil {
				return lateAndPods(row)
			}
			return ""
		})
}

// byTarget has a line for each trace, with a cell for each target that frontiers are made of.
func byTarget(figures, corner string, traces []recordedTrace, cell func(all rows, target string) string) (string,
	error) {
	targets := []string{"0.400", "0.500", "0.600", "0.700", "0.800", "0.900"}
	title := func(target string) string { return "target " + strings.TrimRight(target, "0") }
	return byTrace(figures, "frontier.csv", corner, traces, targets, title, cell)
}

// ofFrontiers are the recorded traces, and the seven further days of the Twitter stream.
func ofFrontiers() []recordedTrace {
	return slices.Insert(slices.Clone(recorded), 2, recordedTrace{"twitter-week", "Twitter stream, days 2 to 8"})
}

// foresight compares foresail-total, and in brackets clairvoyant, with keda with the same behavior at equal
// pods: what forecasts are worth.
func foresight(figures string) (string, error) {
	return byTarget(figures, "minutes above the threshold / those of `keda/same-behavior` with as many pods (of `clairvoyant`)", ofFrontiers(), func(all rows, target string) string {
		return all.ratio(ours, target) + " (" + all.ratio("clairvoyant", target) + ")"
	})
}

// ratio is how long a scaler with a target is above the threshold, divided by how long keda with the same
// behavior is with as many pods; a dash where no target of that has as many, or where it never is.
func (r rows) ratio(scaler, target string) string {
	row := r.find("scaler", scaler, "target", target)
	pods, failed := strconv.ParseFloat(row["pod_hours"], 64)
	minutes, err := strconv.ParseFloat(row["above_threshold_minutes"], 64)
	rival, ok := r.at("keda/same-behavior", pods)
	if failed != nil || err != nil || !ok || rival == 0 {
		return "-"
	}
	return strconv.FormatFloat(minutes/rival, 'f', 2, 64)
}

// frontier compares foresail-total with keda at equal pods, for each target that was tried.
func frontier(figures string) (string, error) {
	minutes, same := figure{column: "above_threshold_minutes", decimals: 1}, figure{column: "keda_minutes_at_same_pods",
		decimals: 1}
	return byTarget(figures, "minutes above the threshold, `foresail-total` / `keda` with as many pods", recorded,
		func(all rows, target string) string {
			row := all.find("scaler", ours, "target", target)
			return minutes.number(row, "") + " / " + same.number(row, "")
		})
}

// recurring compares scalers that know the load of a day and a week ago, with the default target.
func recurring(figures string) (string, error) {
	const corner = "minutes above the threshold / pod-hours (minutes of `keda` with as many pods)"
	names := []string{"keda", "keda/yesterday", "keda/last-week", ours}
	same := figure{column: "keda_minutes_at_same_pods", decimals: 1}
	traces := []recordedTrace{{"twitter-week", "Twitter stream, days 2 to 8"}, {"nasa", "NASA"}, {"nab", "NAB"}}
	return byTrace(figures, "frontier.csv", corner, traces, names, quoted, func(all rows, name string) string {
		row := all.find("scaler", name, "target", "0.700")
		if name == "keda" {
			return lateAndPods(row)
		}
		return lateAndPods(row) + " (" + same.number(row, "") + ")"
	})
}

// fewTraces are those of few requests, by how many a pod has in a second.
var fewTraces = []recordedTrace{
	{"few-nasa", "0.15 (NASA)"}, {"few-0.2", "0.2"}, {"few-0.5", "0.5"}, {"few-1", "1"}, {"few-2", "2"}, {"few-5", "5"},
	{"few-20", "20"},
}

// fewRequests compares scalers with as many pods as foresail-total has with the default target, by how many
// requests a pod has.
func fewRequests(figures string) (string, error) {
	names := []string{"keda", "keda/same-behavior", ours, ours + "/hpa-defaults", "instant", "clairvoyant"}
	return byTrace(figures, "frontier.csv", "requests/s and pod", fewTraces, names, quoted,
		func(all rows, name string) string {
			pods, _ := strconv.ParseFloat(all.find("scaler", ours, "target", "0.700")["pod_hours"], 64) // 0 finds nothing
			if v, ok := all.at(name, pods); ok {
				return grouped(v, 1)
			}
			return "-"
		})
}

// ahead compares the forecasts of foresail-total with the best free forecast, by how long pods
// take to start.
func ahead(figures string) (string, error) {
	header := []string{"error / that of the best free forecast (late, %; after 6 h)"}
	for _, start := range aheadStarts {
		header = append(header, "pods that start in "+start)
	}
	var body [][]string
	var sets []string
	for _, trace := range aheadTraces {
		cells := []string{trace.title}
		for _, start := range aheadStarts {
			set := aheadSet(trace.set, start)
			all, err := read(figures, set, "forecast.csv")
			if err != nil {
				return "", err
			}
			row := all.find("forecast", ours)
			late := figure{column: "late_share", decimals: 2, factor: 100}.number(row, "")
			learned := figure{column: "late_share_after_6h", decimals: 2, factor: 100}.number(row, "")
			cells = append(cells, fmt.Sprintf("%s (%s; %s)", all.bestRival(), late, learned))
			sets = append(sets, set)
		}
		body = append(body, cells)
	}
	return markdown(figures, header, body, sets...)
}

// bestRival is the largest of the ratios of errors to those of free forecasts: that to the best of them.
func (r rows) bestRival() string {
	largest := math.Inf(-1)
	for _, row := range r {
		if ratio, err := strconv.ParseFloat(row["foresail_by_it_of_rate"], 64); err == nil {
			largest = max(largest, ratio)
		}
	}
	if math.IsInf(largest, -1) {
		return "-"
	}
	return strconv.FormatFloat(largest, 'f', 2, 64)
}

const ours = "foresail-total"

// at returns the minutes above the threshold of a scaler with as many pod-hours, between the targets that were tried.
func (r rows) at(scaler string, hours float64) (minutes float64, ok bool) {
	var before [2]float64
	for _, row := range r {
		if row["scaler"] != scaler {
			continue
		}
		pods, failed := strconv.ParseFloat(row["pod_hours"], 64)
		above, err := strconv.ParseFloat(row["above_threshold_minutes"], 64)
		if failed != nil || err != nil {
			return 0, false
		}
		if pods <= hours && before[0] >= hours && pods < before[0] { // targets rise, so that pods fall
			return before[1] + (above-before[1])*(before[0]-hours)/(before[0]-pods), true
		}
		before = [2]float64{pods, above}
	}
	return 0, false
}

// ablations has a line for each variant of each setting; a star marks a certain difference from the first one.
func ablations(figures string) (string, error) {
	all, err := read(figures, "ablations", "ablations.csv")
	if err != nil {
		return "", err
	}
	groups := []columns{
		{"ramp", []figure{success, p99, podSeconds}},
		{"spike", []figure{success, podSeconds}},
		{"sine", []figure{above, podSeconds}},
		{"bursts", []figure{above, podSeconds}},
	}
	var body [][]string
	for _, first := range all {
		if first["profile"] != groups[0].profile || shownElsewhere(first["variant"]) {
			continue
		}
		cells := []string{first["ablation"] + ": " + first["variant"]}
		for _, group := range groups {
			row := all.find("ablation", first["ablation"], "profile", group.profile, "variant", first["variant"])
			for _, f := range group.figures {
				text := f.number(row, "")
				if text == "-" { // not played
					text = ""
				}
				if f.certain(row) {
					text += " *"
				}
				cells = append(cells, text)
			}
		}
		body = append(body, cells)
	}
	return markdown(figures, append([]string{"setting"}, titles(groups)...), body, "ablations")
}

// shownElsewhere reports whether a variant is left out: scalers of other tables, and a lag between two that
// are shown.
func shownElsewhere(variant string) bool {
	return slices.Contains([]string{"keda", "clairvoyant", "instant"}, variant) ||
		strings.HasSuffix(variant, "seen 5s later")
}

// inRealTime has a line for each scaler in real time, and one below it of the simulator.
func inRealTime(set string) table {
	return func(figures string) (string, error) { return simulatorComparison(figures, set) }
}

func simulatorComparison(figures, set string) (string, error) {
	all, err := read(figures, set, "summary.csv")
	if err != nil {
		return "", err
	}
	columns := []figure{
		{title: "mean, ms", column: "mean_ms"},
		{title: "p50, ms", column: "p50_ms"},
		p90, p99,
		{title: "dropped", column: "dropped"},
		podSeconds,
	}
	header := []string{"load, scaler", ""}
	for _, c := range columns {
		header = append(header, c.title)
	}
	first := func(row map[string]string) int { // both rows of a scaler come together
		return slices.IndexFunc(all, func(o map[string]string) bool {
			return o["profile"] == row["profile"] &&
				o["scaler"] == row["scaler"]
		})
	}
	var body [][]string
	for _, row := range slices.SortedStableFunc(slices.Values(all),
		func(a, b map[string]string) int { return cmp.Compare(first(a), first(b)) }) {
		cells := []string{row["profile"] + ", `" + row["scaler"] + "`", row["where"]}
		if row["where"] == "simulated" {
			cells[0] = ""
		}
		for _, c := range columns {
			cells = append(cells, c.number(row, ""))
		}
		body = append(body, cells)
	}
	return markdown(figures, header, body, set)
}

// size has a line for each benchmark of a whole process.
func size(figures string) (string, error) {
	all, err := readBenchmarks(figures, "size", "bench.txt")
	if err != nil {
		return "", err
	}
	cores, memory := figure{column: "cores", decimals: 2}, figure{column: "MiB-resident"}
	var body [][]string
	for _, load := range []struct{ title, benchmark string }{
		{"500 pods, source `pods`, 1 s", "Pods/pods=500"},
		{"5,000 pods (250 PredictedMetrics), source `pods`, 1 s", "Pods/pods=5000"},
		{"1,000 PredictedMetrics × 20 pods, source `remoteWrite`, 1 s", "RemoteWrite/metrics=1000"},
	} {
		row := all.find("benchmark", load.benchmark)
		body = append(body, []string{load.title, cores.number(row, ""), memory.number(row, "")})
	}
	return markdown(figures, []string{"", "cores", "resident memory, MiB"}, body, "size")
}

// nodeStarts has a line for each way to have nodes for pods, with a quick ramp and a slow one.
func nodeStarts(figures string) (string, error) {
	costs := []figure{{column: "pending-pod-seconds"}, {column: "seconds-above-threshold"}, {column: "node-seconds"}}
	sets := []string{"nodes", "slow-nodes"}
	ramps := make([]rows, len(sets))
	for i, name := range sets {
		var err error
		if ramps[i], err = readBenchmarks(figures, name, "bench.txt"); err != nil {
			return "", err
		}
	}
	var body [][]string
	for _, way := range []struct{ title, name string }{
		{"Karpenter, no buffer", "none"},
		{"Karpenter, a buffer that keeps its size", "static"},
		{"Karpenter, a buffer sized by forecast", "forecast"},
		{"a [WorkerPool](nodepool.md)", "workerpool"},
	} {
		cells := []string{way.title}
		for _, ramp := range ramps {
			row := ramp.find("benchmark", "Ramp/"+way.name)
			var numbers []string
			for _, cost := range costs {
				numbers = append(numbers, cost.number(row, ""))
			}
			cells = append(cells, strings.Join(numbers, " / "))
		}
		body = append(body, cells)
	}
	header := []string{"pending pod-seconds / seconds above the threshold / node-seconds", "rise within a minute",
		"rise within four minutes"}
	return markdown(figures, header, body, sets...)
}

// karpenterComparison has a line for each load and each autoscaler.
func karpenterComparison(figures string) (string, error) {
	all, err := readBenchmarks(figures, "karpenter", "bench.txt")
	if err != nil {
		return "", err
	}
	costs := []figure{
		{title: "pods", column: "pods"},
		{title: "pending pod-seconds", column: "pending-pod-seconds"},
		{title: "pending, p50, s", column: "pending-s-p50", decimals: 1},
		{title: "p90, s", column: "pending-s-p90", decimals: 1},
		{title: "node-hours", column: "node-seconds", decimals: 3, factor: 1. / 3600},
		{title: "launches", column: "launches"},
		{title: "removals", column: "removals"},
		{title: "CPU, s", column: "cpu-seconds", decimals: 1},
		{title: "memory, MiB", column: "MiB-peak"},
	}
	header := []string{"load", "autoscaler"}
	for _, cost := range costs {
		header = append(header, cost.title)
	}
	idle := figure{column: "idle-cores", decimals: 1}
	var body [][]string
	for _, load := range []struct{ title, name string }{
		{"ramp", "ramp"}, {"day and night", "day-and-night"}, {"batch jobs", "batch-jobs"}, {"spikes", "spikes"},
	} {
		for _, autoscaler := range []struct{ title, name string }{{"Karpenter", "karpenter"},
			{"WorkerPool", "workerpool"}} {
			row := all.find("benchmark", "Loads/"+load.name+"/"+autoscaler.name)
			cells := []string{load.title + " (" + idle.number(row, "") + " cores idle)", autoscaler.title}
			for _, cost := range costs {
				cells = append(cells, cost.number(row, ""))
			}
			body = append(body, cells)
		}
	}
	return markdown(figures, header, body, "karpenter")
}
