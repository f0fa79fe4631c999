package ec2

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// maxTypes bounds the offered types that meet requirements.
const maxTypes = 60

// selection is the types that meet the requirements of a pool.
type selection struct {
	at     time.Time // of the calls
	shapes map[string]types.InstanceTypeInfo
	zones  map[string]map[string]bool // in which each type is offered
}

// names returns the types in any order; nil for no selection.
func (s *selection) names() []string {
	if s == nil {
		return nil
	}
	return slices.AppendSeq(make([]string, 0, len(s.shapes)), maps.Keys(s.shapes))
}

// ranked returns up to limit types, the cheapest first. The cheapest type of each size comes before the second of any,
// so that a pod that needs a large type gets one. Types without a known price follow the others, by size.
func (s *selection) ranked(price func(name string) *float64, limit int) []string {
	names := slices.DeleteFunc(s.names(), func(name string) bool { return len(s.zones[name]) == 0 })
	cost := func(name string) float64 {
		if usd := price(name); usd != nil {
			return *usd
		}
		return math.Inf(1)
	}
	byPrice := func(a, b string) int {
		return cmp.Or(cmp.Compare(cost(a), cost(b)),
			cmp.Compare(sizeOf(s.shapes[a]).weight(), sizeOf(s.shapes[b]).weight()),
			cmp.Compare(generation(b), generation(a)), cmp.Compare(a, b))
	}
	slices.SortFunc(names, byPrice)
	rank, ofSize := map[string]int{}, map[size]int{}
	for _, name := range names {
		size := sizeOf(s.shapes[name])
		rank[name] = ofSize[size]
		ofSize[size]++
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	names = names[:min(len(names), limit)]
	slices.SortFunc(names, byPrice)
	return names
}

// size is the properties that types share if pods can use one as well as another.
type size struct {
	cores  int32
	memory int64
	device string
}

func sizeOf(shape types.InstanceTypeInfo) size {
	s := size{cores: aws.ToInt32(shape.VCpuInfo.DefaultVCpus), memory: aws.ToInt64(shape.MemoryInfo.SizeInMiB)}
	var all []string
	for name, quantity := range devices(shape) {
		all = append(all, string(name)+"="+quantity.String())
	}
	slices.Sort(all)
	s.device = strings.Join(all, ",")
	return s
}

// weight compares sizes without prices: a GiB of memory costs about an eighth of a virtual CPU.
func (s size) weight() int64 { return int64(s.cores)*8*1024 + s.memory }
