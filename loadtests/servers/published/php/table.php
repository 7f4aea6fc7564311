<!DOCTYPE html>
<html lang="en">
<title>Squares</title>
<h1>Squares for <?= htmlspecialchars($_GET["name"] ?? "nobody") ?></h1>
<table>
<?php for ($n = 1; $n <= 50; $n++): ?>
<tr><td><?= $n ?></td><td><?= $n * $n ?></td></tr>
<?php endfor ?>
</table>
<p>Made at <?= gmdate("H:i:s") ?>.</p>
</html>
