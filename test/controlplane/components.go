package controlplane

// Component names one program of the control plane; it is also the name of its binary and of its log file.
type Component string

// The programs of a cluster, in the order in which they start.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
)

// Components lists the programs of a cluster in the order in which they start. They are stopped in reverse.
func Components() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}

// mainPackages says what each component is built from, within the module in components/.
var mainPackages = map[Component]string{
	Etcd:              "go.etcd.io/etcd/server/v3",
	APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
	ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
	Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
	Kwok:              "sigs.k8s.io/kwok/cmd/kwok",
}

const (
	kubernetesModule = "k8s.io/kubernetes"
	kwokModule       = "sigs.k8s.io/kwok"
)

// kwokStages are the life-cycle stages taken from kwok's own module; pods start and become ready by those in stages/.
var kwokStages = []string{
	"kustomize/stage/node/fast/node-initialize.yaml",
	"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"kustomize/stage/pod/fast/pod-complete.yaml",
	"kustomize/stage/pod/fast/pod-delete.yaml",
}
