import { inEachLanguage } from '../../language.ts'

/** Sentences of the page on which a user connects a device. */
export const deviceWords = inEachLanguage({
  en: {
    title: 'Connect a device',
    enter: 'Enter the code that your device shows.',
    code: 'Code',
    goOn: 'Continue',
    wrong: 'This code is wrong, has expired or is used already.',
    asks: '{client} on a device asks for access to your account {name}.',
    asksGuest: '{client} on a device asks for access to your guest account.',
    shows: 'Code on the device',
    place: 'Network address',
    agent: 'Device',
    time: 'Time',
    unknown: 'unknown',
    may: 'It may:',
    warning:
      'Allow this only if the device is before you and shows this code. If you got the code or a link from another person, press “Deny”.',
    another: 'Use another account',
    allowed: 'The device is connected. You can go back to it.',
    denied: 'The device was denied access.',
  },
  de: {
    title: 'Gerät verbinden',
    enter: 'Gib den Code ein, den dein Gerät anzeigt.',
    code: 'Code',
    goOn: 'Weiter',
    wrong: 'Dieser Code ist falsch, abgelaufen oder schon benutzt.',
    asks: '{client} auf einem Gerät bittet um Zugriff auf dein Konto {name}.',
    asksGuest: '{client} auf einem Gerät bittet um Zugriff auf dein Gastkonto.',
    shows: 'Code auf dem Gerät',
    place: 'Netzwerkadresse',
    agent: 'Gerät',
    time: 'Zeit',
    unknown: 'unbekannt',
    may: 'Damit darf die Anwendung:',
    warning:
      'Erlaube das nur, wenn das Gerät vor dir steht und diesen Code zeigt. Hat dir jemand den Code oder einen Link geschickt, dann drücke „Ablehnen“.',
    another: 'Ein anderes Konto verwenden',
    allowed: 'Das Gerät ist verbunden. Du kannst dorthin zurückkehren.',
    denied: 'Dem Gerät wurde der Zugriff verweigert.',
  },
})
