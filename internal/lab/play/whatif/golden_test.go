package whatif

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/golden"
)

func TestWhatIsAnswered(t *testing.T) {
	data, err := json.MarshalIndent(play(t, recommended(0.7), hour(0.7)[:180]), "", " ")
	require.NoError(t, err)
	golden.Equal(t, "answer.json", string(data))
}
