// Package archtest keeps the rules of docs/architecture.md on who may import whom.
package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/foresail/foresail/"

// listed is a package as go list prints it.
type listed struct {
	ImportPath    string
	Imports, Deps []string
}

// goList returns every package of the module and all that these depend on. Tests do not count.
var goList = sync.OnceValues(func() (map[string]listed, error) {
	command := exec.CommandContext(context.Background(), "go", "list", "-deps", "-json=ImportPath,Imports,Deps",
		"./...")
	command.Dir = "../.."
	output, err := command.Output()
	if err != nil {
		return nil, err
	}
	packages := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var p listed
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
	return packages, nil
})

// imports returns, for each package of the module that matches patterns, its own imports or, with
// deps, all it depends on.
func imports(t *testing.T, deps bool, patterns ...string) map[string][]string {
	t.Helper()
	packages, err := goList()
	require.NoError(t, err)
	out := map[string][]string{}
	for _, pattern := range patterns {
		folder, below := strings.CutSuffix(pattern, "/...")
		of := strings.TrimSuffix(module+strings.TrimPrefix(strings.TrimPrefix(folder, "."), "/"), "/")
		found := false
		for path, p := range packages {
			if path != of && (!below || !strings.HasPrefix(path, of+"/")) {
				continue
			}
			found = true
			if out[path] = p.Imports; deps {
				out[path] = p.Deps
			}
		}
		require.True(t, found, "%s matches no package", pattern)
	}
	return out
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func TestPipelineDependsOnTheStandardLibraryAlone(t *testing.T) {
	for from, list := range imports(t, true, "./pipeline/...") {
		if strings.HasSuffix(from, "test") { // it is for tests
			continue
		}
		for _, path := range list {
			own := strings.HasPrefix(path, module+"pipeline") && !strings.HasSuffix(path, "test")
			assert.True(t, isStandard(path) || own, "%s depends on %s", from, path)
			assert.NotContains(t, []string{"math/rand", "math/rand/v2"}, path, "%s draws random numbers", from)
		}
	}
}

// The stages of a forecast share nouns. Only the pipeline composes them.
func TestStagesOfThePipelineAreKeptApart(t *testing.T) {
	allowed := map[string][]string{
		"series": nil, "align": {"series"}, "impute": {"series"}, "redistribute": {"series"}, "line": {"series"},
		"predict": {"series", "line"}, "decide": {"series"}, "learn": {"series", "line", "decide"}, "judge": {"series"},
	}
	for stage, below := range allowed {
		for _, path := range imports(t, true, "./pipeline/"+stage)[module+"pipeline/"+stage] {
			if !isStandard(path) {
				assert.Contains(t, below, strings.TrimPrefix(path, module+"pipeline/"), "pipeline/%s", stage)
			}
		}
	}
}

func TestAPIDependsOnApimachineryAlone(t *testing.T) {
	for _, path := range imports(t, false, "./api/v1alpha1")[module+"api/v1alpha1"] {
		assert.True(t, isStandard(path) || strings.HasPrefix(path, "k8s.io/apimachinery/"), path)
	}
}

func TestPlanIsPure(t *testing.T) {
	pure := []string{module + "nodepool/fleet", module + "nodepool/state", module + "internal/keepalive"}
	for _, path := range imports(t, true, "./nodepool/plan")[module+"nodepool/plan"] {
		assert.True(t, isStandard(path) || slices.Contains(pure, path), path)
	}
	for _, path := range append(pure, module+"nodepool/plan") {
		for _, imported := range imports(t, false, "./"+strings.TrimPrefix(path, module))[path] {
			assert.NotContains(t, []string{"math/rand", "math/rand/v2"}, imported, "%s draws random numbers", path)
		}
	}
}

// Each phase of a pool is built on those before it, and only the pool composes them.
func TestPhasesDoNotKnowLaterOnes(t *testing.T) {
	phases := []string{"observe", "forecast", "act"}
	for i, phase := range phases {
		list := imports(t, true, "./nodepool/"+phase)[module+"nodepool/"+phase]
		for _, later := range append(phases[i+1:], "report", "controller") {
			assert.NotContains(t, list, module+"nodepool/"+later)
		}
		assert.NotContains(t, list, module+"nodepool")
	}
	for _, below := range []string{"fleet", "cluster", "state", "plan", "journal"} {
		for _, path := range imports(t, true, "./nodepool/"+below)[module+"nodepool/"+below] {
			for _, phase := range append(phases, "report", "controller") {
				assert.NotEqual(t, module+"nodepool/"+phase, path, "%s depends on a phase", below)
			}
		}
	}
}

func TestConfigurationOfPoolsIsPure(t *testing.T) {
	pure := []string{"api/v1alpha1", "internal/schedule", "nodepool/fleet", "nodepool/plan", "nodepool/cluster",
		"nodepool/cluster/scheduling"}
	for _, path := range imports(t, false, "./nodepool/config")[module+"nodepool/config"] {
		allowed := isStandard(path) || slices.Contains(pure, strings.TrimPrefix(path, module)) ||
			strings.HasPrefix(path, "k8s.io/api")
		assert.True(t, allowed, path)
	}
}

func TestSchedulesArePure(t *testing.T) {
	for _, path := range imports(t, false, "./internal/schedule")[module+"internal/schedule"] {
		assert.True(t, isStandard(path) || path == module+"pipeline" || path == "github.com/robfig/cron/v3", path)
	}
}

func TestSourcesAndDoorsDoNotImportEachOther(t *testing.T) {
	doors := []string{module + "adapter/door/externalmetrics", module + "adapter/door/externalmetrics/forward",
		module + "adapter/door/custommetrics", module + "adapter/door/keda", module + "adapter/scheduler/extender", module + "adapter/door/dashboard"}
	for from, list := range imports(t, false, "./adapter/...") {
		for _, to := range list {
			switch {
			case strings.HasPrefix(from, module+"adapter/source/"):
				assert.False(t, strings.HasPrefix(to, module+"adapter/source/") && !strings.HasPrefix(to, from),
					"%s imports %s", from, to)
			case from == module+"adapter/source":
				assert.False(t, strings.HasPrefix(to, module+"adapter/") && to != module+"adapter/forecast/podtracker",
					"%s imports %s", from, to)
			}
			if !strings.HasPrefix(from, module+"adapter/scheduler/extender/") { // of the extender itself
				assert.NotContains(t, doors, to, "%s imports a door", from)
			}
			assert.NotEqual(t, module+"adapter/source/sourcetest", to, "%s imports what is for tests", from)
		}
	}
	for _, door := range doors {
		for _, to := range imports(t, false, "./"+strings.TrimPrefix(door, module))[door] {
			if strings.HasPrefix(to, module+"adapter/") && !strings.HasPrefix(to, door+"/") {
				assert.Contains(t, []string{module + "adapter/forecast/snapshot", module + "adapter/serving",
					module + "adapter/serving/kubeapi"}, to, "a door reads snapshots and nothing else")
			}
		}
	}
}

func TestTheDecoderOfPushedSamplesKnowsNoSubscriptions(t *testing.T) {
	const decode = module + "adapter/source/remotewrite/decode"
	for _, to := range imports(t, true, "./adapter/source/remotewrite/decode")[decode] {
		assert.False(t, strings.HasPrefix(to, module+"adapter/") && to != decode, "the decoder depends on %s", to)
	}
}

// A door of another protocol must not inherit those of external.metrics.k8s.io.
func TestServingIsFreeOfProtocols(t *testing.T) {
	const serving = module + "adapter/serving"
	for _, to := range imports(t, false, "./adapter/serving")[serving] {
		allowed := isStandard(to) || to == module+"adapter/forecast/snapshot" ||
			strings.HasPrefix(to, "k8s.io/apimachinery/pkg/") && !strings.HasPrefix(to, "k8s.io/apimachinery/pkg/apis/")
		assert.True(t, allowed, "serving imports %s", to)
	}
	for _, to := range imports(t, true, "./adapter/serving")[serving] {
		for _, forbidden := range []string{"k8s.io/apiserver", "k8s.io/client-go", "k8s.io/metrics",
			"sigs.k8s.io/custom-metrics-apiserver", "google.golang.org/grpc"} {
			assert.False(t, strings.HasPrefix(to, forbidden), "serving depends on %s", to)
		}
	}
}

// The keeper does not know the kinds of objects that it keeps, and these do not know each other.
func TestKindsOfObjectsAreKeptApart(t *testing.T) {
	const keep = module + "adapter/keep"
	isKind := func(of string) bool { return strings.HasPrefix(of, keep+"/") && of != keep+"/keeptest" }
	for from, list := range imports(t, true, "./adapter/keep/...") {
		for _, to := range list {
			assert.False(t, isKind(to) && to != from, "%s depends on %s", from, to)
		}
	}
	for from, list := range imports(t, false, "./...") {
		for _, to := range list {
			assert.False(t, isKind(to) && !strings.HasPrefix(from, module+"internal/cli/"),
				"%s imports %s: keepers are listed where they are started", from, to)
		}
	}
}

// An age is compared with staleAfter in adapter/forecast/snapshot alone.
func TestFreshnessIsJudgedInOnePlace(t *testing.T) {
	comparison := regexp.MustCompile(`\.(Sub|Since|Before|After)\(.*[<>].*[sS]taleAfter|[<>]=? .*\.StaleAfter\b.*\.Sub\(`)
	err := filepath.WalkDir("../../adapter", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(content)) {
			assert.False(t, comparison.MatchString(line), "%s: %s", path, line)
		}
		return nil
	})
	require.NoError(t, err)
}

// What pools of workers are about to do is handed to the extender: it does not ask for it, and they
// do not know it.
func TestTheExtenderAndTheNodePoolMeetInOnePlace(t *testing.T) {
	const extender = module + "adapter/scheduler/extender"
	for _, to := range imports(t, true, "./adapter/scheduler/extender")[extender] {
		assert.False(t, to == module+"nodepool" || strings.HasPrefix(to, module+"nodepool/"),
			"the extender depends on %s", to)
	}
	for from, list := range imports(t, false, "./...") {
		if strings.HasPrefix(from, extender+"/") || strings.HasPrefix(from, module+"internal/cli/") ||
			strings.HasPrefix(from, module+"test/") {
			continue
		}
		assert.NotContains(t, list, extender, "%s imports the extender", from)
	}
}

// Only commands contain both the lab and what runs in a cluster.
func TestTheProductDoesNotImportTheLab(t *testing.T) {
	for from, list := range imports(t, true, "./adapter/...", "./pipeline/...", "./api/...", "./nodepool/...") {
		for _, to := range list {
			assert.False(t, strings.HasPrefix(to, module+"internal/lab"), "%s depends on %s", from, to)
		}
	}
}

// Worlds, scalers and scores do not know each other, reports know none of them, and plays compose them.
func TestRoomsOfTheLab(t *testing.T) {
	const lab = module + "internal/lab"
	allowed := map[string][]string{
		"world": {""}, "scaler": {"", "scaler"}, "score": {""}, "report": {"report"},
		"play": {"", "world", "scaler", "score", "report", "play"}, "replay": {"report"}, "threshold": {"report"},
	}
	room := func(path string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, lab), "/"), "/")
		return name
	}
	for from, list := range imports(t, false, "./internal/lab/...") {
		for _, to := range list {
			if to == lab || strings.HasPrefix(to, lab+"/") {
				assert.Contains(t, allowed[room(from)], room(to), "%s imports %s", from, to)
			}
		}
	}
}

// The command composes the rooms of internal/cli, which share what is in it.
func TestRoomsOfTheCommandLine(t *testing.T) {
	const room = module + "internal/cli"
	for from, list := range imports(t, false, "./...") {
		if from == module+"cmd/foresail" {
			continue
		}
		for _, to := range list {
			assert.False(t, strings.HasPrefix(to, room+"/") && to != from, "%s imports %s", from, to)
			assert.False(t, to == room && !strings.HasPrefix(from, room+"/"), "%s imports %s", from, to)
		}
	}
}

func TestNothingImportsCommands(t *testing.T) {
	for from, list := range imports(t, false, "./...") {
		for _, to := range list {
			assert.False(t, strings.HasPrefix(to, module+"cmd/"), "%s imports %s", from, to)
		}
	}
}

func TestProductDoesNotImportTests(t *testing.T) {
	for from, list := range imports(t, true, "./cmd/...", "./adapter/...", "./pipeline/...", "./api/...",
		"./nodepool/...") {
		for _, to := range list {
			assert.False(t, strings.HasPrefix(to, module+"test/"), "%s depends on %s", from, to)
		}
	}
}

// A type that can be read has at most 20 methods, in one file or two. Types above that are listed
// with the reason.
func TestTypesCanBeRead(t *testing.T) {
	allowed := map[string]string{
		"adapter/forecast/podtracker.TargetPods": "it answers what the forecaster, the keepers and the doors ask of the pods of a target",
		"adapter/keep/keeptest.Fixture":          "it is the one world of the tests of both keepers",
		"adapter/source/pods.Source":             "it is the queue of scrapes and the scrapes, each in a file",
		"nodepool/controller.Controller":         "it is controller-runtime's one type of a controller; its files are parts of a pool's life",
	}
	methods, files := methodsOf(t, "../../adapter", "../../api", "../../cmd", "../../internal", "../../nodepool",
		"../../pipeline")
	for name, n := range methods {
		if allowed[name] == "" {
			assert.LessOrEqual(t, n, 20, "methods of %s", name)
			assert.LessOrEqual(t, len(files[name]), 2, "files of %s: %v", name, files[name])
		}
	}
	for name := range allowed {
		assert.True(t, methods[name] > 20 || len(files[name]) > 2, "%s needs no exception", name)
	}
}

// methodsOf counts the methods of each type of the packages in folders, and the files that they are in.
func methodsOf(t *testing.T, folders ...string) (methods map[string]int, files map[string]map[string]bool) {
	t.Helper()
	methods, files = map[string]int{}, map[string]map[string]bool{}
	count := func(path string, _ fs.DirEntry, err error) error {
		generated := strings.Contains(path, ".pb.") || strings.Contains(path, "zz_generated")
		if err != nil || generated || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			name := strings.TrimPrefix(filepath.Dir(path), "../../") + "." + receiver(f.Recv.List[0].Type)
			methods[name]++
			if files[name] == nil {
				files[name] = map[string]bool{}
			}
			files[name][filepath.Base(path)] = true
		}
		return nil
	}
	for _, folder := range folders {
		require.NoError(t, filepath.WalkDir(folder, count))
	}
	return methods, files
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr: // of a type with several parameters
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
