/* The customer's wish for a person, kept until the service has heard it: said twice it is the same. */

export class Wish {
  constructor(send) {
    this.send = send;
    this.forget();
  }

  make() {
    this.isOpen = true;
    this.tell();
  }

  /* If there is a line, and it is not on it already. */
  tell() {
    if (this.isOpen && !this.isSent) this.isSent = this.send({ type: "person" });
  }

  lost() {
    this.isSent = false;
  }

  forget() {
    this.isOpen = false;
    this.isSent = false;
  }
}
