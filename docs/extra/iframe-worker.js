// Search in pages opened straight from the disk.
//
// The search runs in a Worker, and browsers refuse workers to pages without a server.  There, a
// hidden frame takes the worker's place: it runs the same script and passes the same messages.
// (Material's offline plugin would load such a stand-in from the network; the name of this file
// tells it that there is one here.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.ready = new Promise(resolve => this.frame.addEventListener("load", resolve))
      this.frame.srcdoc = `<script>
        postMessage = message => parent.postMessage(message, "*")
      </script><script src="${url}"></script>`
      window.addEventListener("message", event => {
        if (event.source !== this.frame.contentWindow) return
        const copy = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(copy)
        if (this.onmessage) this.onmessage(copy)
      })
      document.body.appendChild(this.frame)
    }

    postMessage(message) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(
        new MessageEvent("message", { data: message })
      ))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
