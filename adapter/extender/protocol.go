package extender

import (
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// maxScore is the best score of a node; the scheduler multiplies scores by the weight of the extender, and by ten.
const maxScore = extenderv1.MaxExtenderPriority
