package controlplane

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parentEnv, set to a folder, makes of this test binary a parent that starts a child, prints its
// pid and waits.
const parentEnv = "FORESAIL_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		beParent(dir)
	}
	os.Exit(m.Run())
}

func beParent(dir string) {
	p, err := StartProcess("child", "/bin/sleep", filepath.Join(dir, "log"), dir, []string{"600"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	<-p.ended
	os.Exit(1)
}

func TestChildrenDieWithAKilledParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+t.TempDir())
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	require.True(t, running(child))

	require.NoError(t, parent.Process.Kill())
	require.ErrorContains(t, parent.Wait(), "killed")
	require.Eventually(t, func() bool { return !running(child) }, 10*time.Second, 10*time.Millisecond)
}

// running reports whether a process works: a dead one that nobody has waited for does not.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the name in parentheses.
	_, after, found := strings.Cut(string(stat), ") ")
	return found && !strings.HasPrefix(after, "Z")
}
