// Package browser drives a real Chromium by its DevTools protocol, as far as tests of a page need
// it: it loads pages, presses keys, evaluates expressions, takes pictures, and collects everything
// that the browser complains about.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

// Browser is one tab of a Chromium. Its methods are not safe for concurrent use.
type Browser struct {
	command *exec.Cmd
	folder  string
	socket  *websocket.Conn
	session string
	calls   int
	ended   chan struct{} // closed when nothing is read any more
	silent  chan struct{} // closed when no process is left that could write

	mu       sync.Mutex // of what is below
	answers  map[int]chan message
	problems []string
	asked    []string
}

// message is a call, an answer or an event of the protocol.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// programs are what Chromium may be called.
var programs = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

const callTimeout = time.Minute

var listening = regexp.MustCompile(`DevTools listening on (ws://\S+)`)

// Start starts a Chromium with an empty profile, whose clock is in UTC.
func Start(ctx context.Context) (*Browser, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "browser-")
	if err != nil {
		return nil, err
	}
	b := &Browser{folder: folder, answers: map[int]chan message{}, ended: make(chan struct{}),
		silent: make(chan struct{})}
	b.command = exec.CommandContext(ctx, program, "--headless=new", "--remote-debugging-port=0",
		"--user-data-dir="+folder,
		"--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--hide-scrollbars",
		"--force-device-scale-factor=1", "about:blank")
	b.command.Env = append(os.Environ(), "TZ=UTC", "LANG=en_US.UTF-8")
	b.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := b.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := b.command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	lines := bufio.NewScanner(stderr)
	address, err := listensAt(lines)
	go func() {
		defer close(b.silent) // when all of its processes have ended
		_, _ = io.Copy(io.Discard, stderr)
	}()
	if err == nil {
		err = b.connect(ctx, address)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func find() (string, error) {
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("none of %s is on the PATH: apt-get install chromium", strings.Join(programs, ", "))
}

// listensAt returns the address that Chromium says it listens at.
func listensAt(lines *bufio.Scanner) (string, error) {
	for lines.Scan() {
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			return match[1], nil
		}
	}
	return "", errors.New("chromium ended before it listened")
}

func (b *Browser) connect(ctx context.Context, address string) error {
	socket, response, err := websocket.DefaultDialer.DialContext(ctx, address, nil)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	b.socket = socket
	go b.read()
	var target struct{ TargetID string }
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var attached struct{ SessionID string }
	if err := b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true},
		&attached); err != nil {
		return err
	}
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Accessibility"} {
		if err := b.call(domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the Chromium.
func (b *Browser) Close() error {
	if b.socket != nil {
		_ = b.socket.Close()
		<-b.ended
	}
	// and the processes that it has started, which write to its folder
	_ = syscall.Kill(-b.command.Process.Pid, syscall.SIGKILL)
	<-b.silent
	_ = b.command.Wait() // killed
	return os.RemoveAll(b.folder)
}

// read hands on answers, and keeps events that are problems.
func (b *Browser) read() {
	defer close(b.ended)
	for {
		var m message
		if err := b.socket.ReadJSON(&m); err != nil {
			return
		}
		b.mu.Lock()
		if waiting := b.answers[m.ID]; waiting != nil {
			waiting <- m
			delete(b.answers, m.ID)
		}
		b.note(m)
		b.mu.Unlock()
	}
}

func (b *Browser) note(m message) {
	var p struct {
		Type  string
		Args  []struct{ Value, Description any }
		Entry struct{ Level, Source, Text, URL string }

		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Request struct{ URL string }
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	switch m.Method {
	case "Network.requestWillBeSent":
		b.asked = append(b.asked, p.Request.URL)
	case "Runtime.exceptionThrown":
		b.problems = append(b.problems,
			"exception: "+p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Runtime.consoleAPICalled":
		if slices.Contains([]string{"error", "warning", "assert"}, p.Type) {
			b.problems = append(b.problems, fmt.Sprintf("console: %v", p.Args))
		}
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			b.problems = append(b.problems, fmt.Sprintf("%s: %s %s", p.Entry.Source, p.Entry.Text, p.Entry.URL))
		}
	}
}

// call makes a call, and decodes its result, if there is anything to decode it to.
func (b *Browser) call(method string, params, result any) error {
	b.calls++
	content, err := json.Marshal(params)
	if err != nil {
		return err
	}
	m := message{ID: b.calls, Session: b.session, Method: method}
	if params != nil {
		m.Params = content
	}
	answered := make(chan message, 1)
	b.mu.Lock()
	b.answers[m.ID] = answered
	b.mu.Unlock()
	if err := b.socket.WriteJSON(m); err != nil {
		return err
	}
	select {
	case answer := <-answered:
		switch {
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(answer.Result, result)
	case <-b.ended:
		return fmt.Errorf("%s: the browser has ended", method)
	case <-time.After(callTimeout):
		return fmt.Errorf("%s: no answer within %s", method, callTimeout)
	}
}

// Problems returns what the browser has complained about since the last time: errors and warnings
// of scripts, requests that failed, and what a Content-Security-Policy forbade.
func (b *Browser) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.problems
	b.problems = nil
	return found
}

// Asked returns the URLs that the browser has asked for.
func (b *Browser) Asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

// Look sets the size of the window in pixels, and the color scheme that the user prefers.
func (b *Browser) Look(width, height int, scheme string) error {
	return errors.Join(
		b.call("Emulation.setDeviceMetricsOverride",
			map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil),
		b.call("Emulation.setEmulatedMedia",
			map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil))
}

// Open loads a page.
func (b *Browser) Open(address string) error {
	var result struct{ ErrorText string }
	if err := b.call("Page.navigate", map[string]any{"url": address}, &result); err != nil {
		return err
	}
	if result.ErrorText != "" {
		return errors.New(result.ErrorText)
	}
	return nil
}

// Evaluate decodes the value of an expression.
func (b *Browser) Evaluate(expression string, value any) error {
	var result struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	if err := b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true,
		"awaitPromise": true}, &result); err != nil {
		return err
	}
	if e := result.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s", expression, e.Exception.Description)
	}
	return json.Unmarshal(result.Result.Value, value)
}

// Until waits until an expression is true.
func (b *Browser) Until(expression string) error {
	script := `new Promise((done) => {
  const until = Date.now() + 30000;
  const look = () => { if (` + expression + ` || Date.now() > until) done(Boolean(` + expression + `)); else setTimeout(look, 50); };
  look();
})`
	var met bool
	if err := b.Evaluate(script, &met); err != nil {
		return err
	}
	if !met {
		return fmt.Errorf("not within half a minute: %s", expression)
	}
	return nil
}

// keys are the codes of keys that have no character.
var keys = map[string]int{"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "End": 35, "Home": 36}

// Press presses a key, such as Tab.
func (b *Browser) Press(key string) error {
	event := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": keys[key]}
	if key == "Enter" {
		event["text"] = "\r"
	}
	if err := b.call("Input.dispatchKeyEvent", event, nil); err != nil {
		return err
	}
	event["type"] = "keyUp"
	return b.call("Input.dispatchKeyEvent", event, nil)
}

// Type types a text where the focus is.
func (b *Browser) Type(text string) error {
	return b.call("Input.insertText", map[string]any{"text": text}, nil)
}

// Nameless returns the roles of elements that a screen reader would announce without a name.
func (b *Browser) Nameless() ([]string, error) {
	type value struct{ Value any }
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name value
		}
	}
	if err := b.call("Accessibility.getFullAXTree", nil, &tree); err != nil {
		return nil, err
	}
	named := []string{"button", "link", "slider", "searchbox", "textbox", "image", "img", "region", "table",
		"navigation", "columnheader", "rowheader", "heading"}
	var found []string
	seen := 0
	for _, node := range tree.Nodes {
		role, _ := node.Role.Value.(string)
		if node.Ignored || !slices.Contains(named, role) {
			continue
		}
		seen++
		if name, _ := node.Name.Value.(string); strings.TrimSpace(name) == "" {
			found = append(found, role)
		}
	}
	if seen == 0 {
		return nil, errors.New("the page has no element with a role")
	}
	return found, nil
}

// Picture returns the window as a PNG.
func (b *Browser) Picture() ([]byte, error) {
	var result struct{ Data []byte }
	err := b.call("Page.captureScreenshot", map[string]any{"format": "png", "optimizeForSpeed": false}, &result)
	return result.Data, err
}
