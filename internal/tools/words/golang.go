package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxCode = 120 // columns

// goFile is the check of one Go file.
type goFile struct {
	name     string
	set      *token.FileSet
	rules    []rule
	places   []string // of names
	lines    []string
	findings []finding
}

// checkGo looks at comments, strings, declared names and doc comments of a Go file, and at the
// length of its lines.
func checkGo(name string, content []byte, rules []rule) ([]finding, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &goFile{name: name, set: set, rules: rules, places: []string{"name", "own"},
		lines: strings.Split(string(content), "\n")}
	if isForTests(name) {
		f.places = []string{"name"}
	}
	for _, group := range parsed.Comments {
		f.words(group.Pos(), group.Text())
	}
	ast.Inspect(parsed, f.node)
	for _, declaration := range parsed.Decls {
		f.docOf(declaration)
	}
	f.long()
	return f.findings, nil
}

func (f *goFile) add(line int, kind, message string) {
	if !strings.Contains(f.lines[line-1], "words:ok") {
		f.findings = append(f.findings, finding{file: f.name, line: line, kind: kind, message: message})
	}
}

// words reports what the rules find in a text that begins at pos. Lines of a comment and of a raw
// string are those of the file.
func (f *goFile) words(pos token.Pos, text string) {
	messages, offsets := match(f.rules, []string{"text", "code"}, strings.ReplaceAll(text, "\n", " "))
	for i, message := range messages {
		f.add(f.set.Position(pos).Line+strings.Count(text[:offsets[i]], "\n"), "word", message)
	}
}

// node looks at strings and at declared names.
func (f *goFile) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			f.words(n.Pos(), n.Value)
		}
	case *ast.FuncDecl:
		if isTest(n) {
			f.words(n.Name.Pos(), wordsOf(n.Name.Name))
		} else {
			f.declared(n.Name)
		}
	case *ast.TypeSpec:
		f.declared(n.Name)
	case *ast.ValueSpec:
		f.declared(n.Names...)
	case *ast.Field:
		f.declared(n.Names...)
		if n.Tag != nil {
			for _, name := range n.Names {
				ast.Inspect(name, f.node)
			}
			ast.Inspect(n.Type, f.node)
			return false
		}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			f.declaredExpressions(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			f.declaredExpressions(n.Key, n.Value)
		}
	}
	return true
}

func (f *goFile) declaredExpressions(list ...ast.Expr) {
	for _, e := range list {
		if identifier, ok := e.(*ast.Ident); ok {
			f.declared(identifier)
		}
	}
}

func (f *goFile) declared(names ...*ast.Ident) {
	for _, name := range names {
		messages, _ := match(f.rules, f.places, wordsOf(name.Name))
		for _, message := range messages {
			f.add(f.set.Position(name.Pos()).Line, "name", name.Name+": "+message)
		}
	}
}

// docOf looks at the doc comments of a declaration, also of unexported ones: each begins with the
// name, as go doc and editors show it. Tests are left out: their name is a sentence already, and
// their comment says why it has to hold.
func (f *goFile) docOf(declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if !isTest(d) {
			f.doc(d.Doc, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				f.doc(first(s.Doc, d.Doc, d), s.Name)
				f.fields(s.Type)
			case *ast.ValueSpec:
				f.doc(first(s.Doc, d.Doc, d), s.Names...)
			}
		}
	}
}

// fields looks at methods of an interface; a field's comment need not begin with its name.
func (f *goFile) fields(of ast.Expr) {
	if i, ok := of.(*ast.InterfaceType); ok {
		for _, method := range i.Methods.List {
			f.doc(method.Doc, method.Names...)
		}
	}
}

// first returns the comment of a spec: its own, or that of a declaration of it alone.
func first(spec, declaration *ast.CommentGroup, d *ast.GenDecl) *ast.CommentGroup {
	if spec == nil && !d.Lparen.IsValid() {
		return declaration
	}
	return spec
}

// opening takes the first words of a doc comment: "A", "An" or "The" may precede the name.
var opening = regexp.MustCompile(`^(?:(?:A|An|The)\s+)?([\pL\pN_]+)`)

func (f *goFile) doc(comment *ast.CommentGroup, names ...*ast.Ident) {
	if comment == nil || len(names) == 0 || strings.HasPrefix(comment.Text(), "Deprecated:") || comment.Text() == "" {
		return
	}
	found := opening.FindStringSubmatch(comment.Text())
	for _, name := range names {
		if found != nil && found[1] == name.Name {
			return
		}
	}
	f.add(f.set.Position(comment.Pos()).Line, "doc", fmt.Sprintf("begin the comment with %q", names[0].Name))
}

// isForTests reports whether a file belongs to tests: there want is what a test expects.
func isForTests(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test") ||
		strings.HasPrefix(name, "test/")
}

func isTest(d *ast.FuncDecl) bool {
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
		if d.Recv == nil && strings.HasPrefix(d.Name.Name, prefix) {
			return true
		}
	}
	return false
}

// unbreakable lines are markers of controller-gen and directives, struct tags, and addresses.
var unbreakable = regexp.MustCompile("^\\s*//( ?\\+kubebuilder|go:|\\+)|`(json|protobuf|env):\"|https?://\\S+$")

// message is a string literal that is not divided over lines, because a divided message cannot be found by grep.
var message = regexp.MustCompile("\"([^\"\\\\]|\\\\.){60,}\"|`[^`]{60,}`")

// maxBesides is the number of columns that a line may have in addition to a message.
const maxBesides = 60

func isLong(line string) bool {
	columns := utf8.RuneCountInString(line)
	if columns <= maxCode || unbreakable.MatchString(line) {
		return false
	}
	rest := utf8.RuneCountInString(message.ReplaceAllString(line, ""))
	return rest == columns || rest > maxBesides
}

func (f *goFile) long() {
	for i, line := range f.lines {
		if isLong(line) {
			f.add(i+1, "line", fmt.Sprintf("%d columns, more than %d", utf8.RuneCountInString(line), maxCode))
		}
	}
}
