// How a page is worked by mouse, touch and keyboard; this knows no numbers.
Object.assign(PacWrap, {
  // what a slider stands for, in words, beside it and for a screen reader
  say(input, words) {
    input.setAttribute("aria-valuetext", words);
    const output = input.form.querySelector(`output[for="${input.id}"]`);
    if (output) output.textContent = words;
  },
  // the value of a text field, marked if it is none
  value(input, read) {
    const value = read(input.value);
    input.setAttribute("aria-invalid", String(value === null));
    return value;
  },
  // a part of a drawing
  drawn(parent, kind, shape) {
    const part = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(shape)) part.setAttribute(name, value);
    parent.append(part);
    return part;
  },
  // a picture that is dragged in, by mouse, pen or finger: where, as shares of its width and height
  dragged(plot, begin, move) {
    const moved = (event) => {
      const box = plot.getBoundingClientRect();
      move((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    };
    plot.addEventListener("pointerdown", (event) => {
      begin();
      plot.setPointerCapture(event.pointerId);
      moved(event);
    });
    plot.addEventListener("pointermove", (event) => { if (plot.hasPointerCapture(event.pointerId)) moved(event); });
  },
});
